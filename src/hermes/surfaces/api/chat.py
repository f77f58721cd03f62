"""`/v1/chat/completions`: finds the session of a history, runs one turn and encodes it."""

from __future__ import annotations

from functools import partial

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, replace
from hermes.commands.tool_calls import describe_call, image_part
from hermes.core.errors import NotFound
from hermes.core.events import ReplyAdded
from hermes.core.messages import Usage
from hermes.hosting.follower import RecordAdded, ReplyRestarted, RunEvent, TextPiece
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run, session_of
from hermes.surfaces.api.bodies import (
    ChatBody,
    ClientMessage,
    ModelOptions,
    ParsedInput,
    chat_messages,
    check_text_format,
    history_messages,
    split_input,
)
from hermes.surfaces.api.encoding import (
    CallFinished,
    CallStarted,
    MediaFilter,
    ToolCallTracker,
    finish_reason,
    hermes_fields,
    inline_images,
    replace_paths,
    run_error,
    run_images,
    strip_images,
    usage_of,
)
from hermes.surfaces.api.http import ApiRequest, ApiResponse, HttpError
from hermes.surfaces.api.server_context import ServerContext
from hermes.surfaces.api.turns import (
    HistoryPoint,
    answer_turn,
    check_tools,
    continue_from,
    current_point,
    effort_of,
    find_point,
    history_hash,
    start_run,
    store_point,
    stream_turn,
    tier_of,
    turn_request,
)

REPLY_SEPARATOR = "\n\n"


async def complete(server: ServerContext, request: ApiRequest) -> ApiResponse | None:
    body: ChatBody = request.body
    check_tools(server, body.tools, body.functions)
    if body.n is not None and body.n != 1:
        raise HttpError(400, "unsupported_parameter", "Only n = 1 is supported.", param="n")
    check_text_format(body.response_format, "response_format")
    parsed = split_input(chat_messages(body.messages, "messages"), "messages")
    start = partial(_start_turn, server, request, parsed)
    if body.stream:
        await stream_turn(server, request, start, partial(ChatEncoder, server, request))
        return None

    async def encode_run(run: Run) -> JsonObject:
        message: JsonObject = {
            "role": "assistant",
            "content": await display_text(server, request, run),
        }
        if images := run_images(run):
            message["images"] = [image_part(image) for image in images]
        return {
            "id": completion_id(run),
            "object": "chat.completion",
            "created": int(run.created_at),
            "model": server.model_name,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(run)}],
            "usage": chat_usage(usage_of(run)),
            "hermes": hermes_fields(run),
        }

    return await answer_turn(server, request, start, encode_run)


async def display_text(
    server: ServerContext, request: ApiRequest, run: Run, text: str | None = None
) -> str:
    """Return the answer (or `text`) with links to its files that work on another machine."""
    if server.settings.inline_media:
        return await inline_images(run, any_file=request.client.is_owner, text=text)
    return replace_paths(run.text if text is None else text)


def completion_id(run: Run) -> str:
    return f"chatcmpl-{run.id.removeprefix('run_')}"


def chat_usage(usage: Usage) -> JsonObject:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


async def _start_turn(
    server: ServerContext, request: ApiRequest, parsed: ParsedInput, claim: IdempotencyClaim
) -> Run:
    """Start the turn in the session that the message belongs to."""
    server.admission.check()
    body: ChatBody = request.body
    options = body.model_options or ModelOptions()
    own = await turn_request(
        server,
        request,
        parsed,
        claim,
        param="messages",
        effort=body.reasoning_effort or effort_of(body.model_options),
        tier=tier_of(body.service_tier, options.service_tier),
    )
    named = request.headers.get("x-hermes-session-id")
    if named is not None:
        await server.session_or_none(named, request.client)
        turn = replace(own, session_id=named, create="if_missing")
        return await start_run(server, turn, claim)
    turn = await _resolve_session(server, request, own, parsed, claim)

    async def on_end(run: Run) -> None:
        """Store the history hash by which the next request finds this session."""
        if run_error(run) is not None:
            return
        if turn.create == "always" and not turn.history:
            # The session holds only this run; later records are not counted.
            messages = run.message_total
            point = HistoryPoint(session_id=run.session_id, n=run.last_n, messages=messages)
        else:
            point = await current_point(server, run.session_id, run.last_n)
        streamed = REPLY_SEPARATOR.join(reply.text for reply in run.replies if reply.text)
        texts = [run.text, streamed]
        texts += [strip_images(await display_text(server, request, run, text)) for text in texts]
        hashes = []
        for text in dict.fromkeys(texts):
            answer = ClientMessage(role="assistant", text=text)
            messages_so_far = (*parsed.before, parsed.now, answer)
            hashes.append(history_hash(request.owner_key, parsed.system, messages_so_far))
        await store_point(server, hashes, point)

    return await start_run(server, turn, claim, on_end=on_end)


async def _resolve_session(
    server: ServerContext,
    request: ApiRequest,
    own: TurnRequest,
    parsed: ParsedInput,
    claim: IdempotencyClaim,
) -> TurnRequest:
    if claim.run_id:
        # An earlier attempt has chosen the session.
        session_id = session_of(claim.run_id)
        history = await history_messages(server.app.context, parsed.before, "messages")
        return replace(own, session_id=session_id, create="if_missing", history=history)
    if parsed.before:
        hash = history_hash(request.owner_key, parsed.system, parsed.before)
        if (point := await find_point(server, hash)) is not None:
            try:
                return replace(own, session_id=await continue_from(server, point))
            except NotFound:
                # The session was deleted; the client still sends its history.
                pass
    history = await history_messages(server.app.context, parsed.before, "messages")
    return replace(
        own, session_id=server.run_executor.new_session_id(), create="always", history=history
    )


class ChatEncoder:
    """Encodes a run as chat completion chunks. Their common part is encoded once."""

    def __init__(self, server: ServerContext, request: ApiRequest, run: Run) -> None:
        inline, is_owner = server.settings.inline_media, request.client.is_owner
        self._media = MediaFilter(lambda: run_images(run), inline=inline, any_file=is_owner)
        options = request.body.stream_options
        self._include_usage = options is not None and options.include_usage
        head = {
            "id": completion_id(run),
            "object": "chat.completion.chunk",
            "created": int(run.created_at),
            "model": server.model_name,
        }
        self._head = b"data: " + encode(head)[:-1] + b',"choices":['
        self._before = self._head + b'{"index":0,"delta":{"content":'
        self._thought = self._head + b'{"index":0,"delta":{"reasoning_content":'
        self._after = b'},"finish_reason":null}]}\n\n'
        self._nothing = b'{"index":0,"delta":{},"finish_reason":null}]'
        self._shows_reasoning = server.settings.show_reasoning
        self._tracker = ToolCallTracker()
        self._has_text = False
        self._is_new_reply = False

    def begin(self) -> bytes:
        return self._head + b'{"index":0,"delta":{"role":"assistant","content":""' + self._after

    def encode(self, event: RunEvent) -> bytes:
        match event:
            case TextPiece(text=text, is_text=True):
                return self._chunk(self._media.feed(text))
            case TextPiece(text=text):
                return self._thought + encode(text) + self._after if self._shows_reasoning else b""
            case RecordAdded(record=record):
                data = b""
                if isinstance(record.event, ReplyAdded):
                    data = self._chunk(self._media.flush())
                    self._is_new_reply = True
                return data + b"".join(
                    [self._progress(d) for d in self._tracker.apply(record.event)]
                )
            case ReplyRestarted():
                self._media.flush()
                self._is_new_reply = True
                return b"event: hermes.message.restarted\n" + self._head + self._nothing + b"}\n\n"

    def end(self, run: Run) -> bytes:
        if (failed := run_error(run)) is not None:
            return b"data: " + failed.body + b"\n\ndata: [DONE]\n\n"
        images = run_images(run)
        delta = {"images": [image_part(image) for image in images]} if images else {}
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason(run)}
        usage = encode(chat_usage(usage_of(run)))
        facts = b',"hermes":' + encode(hermes_fields(run))
        data = self._chunk(self._media.flush())
        for picture in self._media.remaining_images():
            self._is_new_reply = True
            data += self._chunk(picture)
        data += self._head + encode(choice) + b"]" + facts + b"}\n\n"
        if self._include_usage:
            data += self._head + b'],"usage":' + usage + b"}\n\n"
        return data + b"data: [DONE]\n\n"

    def _chunk(self, text: str) -> bytes:
        if not text:
            return b""
        if self._is_new_reply and self._has_text:
            text = REPLY_SEPARATOR + text
        self._has_text, self._is_new_reply = True, False
        return self._before + encode(text) + self._after

    def _progress(self, change: CallStarted | CallFinished) -> bytes:
        """A Hermes event that is also a chunk: official clients parse every event as one."""
        if change.call.name.startswith("_"):
            return b""
        call = change.call
        facts: JsonObject = {"toolCallId": call.id, "tool": call.name}
        match change:
            case CallStarted():
                shown = describe_call(call)
                facts |= {"emoji": shown.emoji, "label": shown.detail, "status": "running"}
            case CallFinished(result=result, seconds=seconds):
                milliseconds = round(seconds * 1000)
                facts |= {"status": "completed", "duration_ms": milliseconds}
                facts["is_error"] = result.failed
        data = self._head + self._nothing + b"," + encode(facts)[1:]
        return b"event: hermes.tool.progress\n" + data + b"\n\n"
