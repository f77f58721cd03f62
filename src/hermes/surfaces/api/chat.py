"""`/v1/chat/completions`: finds the session of a history, runs one turn and encodes it."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from sqlite3 import Connection

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value, replace
from hermes.commands.tool_calls import describe_call, image_part
from hermes.config.schema import Effort
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
    history_messages,
    split_input,
    store_images,
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
    stream_run,
    strip_images,
    usage_of,
    wait_for_run,
)
from hermes.surfaces.api.http import Headers, HttpError, HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.idempotency_key import claim_key, run_once
from hermes.surfaces.api.server_context import ServerContext, on_disconnect


class HistoryPoint(Value):
    """A point in a session: after record `n`, with its number of messages."""

    session_id: str
    n: int
    messages: int


def history_hash(client: str, system: str, said: Sequence[ClientMessage]) -> str:
    """A hash of the history that ignores surrounding white space."""
    facts = [client, system.strip()]
    facts += [f"{each.role}\0{each.text.strip()}\0{' '.join(each.urls)}" for each in said]
    return hashlib.sha256(encode(facts)).hexdigest()


async def find_point(house: ServerContext, hash: str) -> HistoryPoint | None:
    def work(db: Connection) -> HistoryPoint | None:
        query = "SELECT session_id, n, messages FROM threads WHERE hash = ?"
        row = db.execute(query, (hash,)).fetchone()
        return HistoryPoint(session_id=row[0], n=row[1], messages=row[2]) if row else None

    return await house.store.run(work)


async def store_point(house: ServerContext, hashes: Sequence[str], spot: HistoryPoint) -> None:
    now = house.app.run.world.clock.now()
    rows = [(hash, spot.session_id, spot.n, spot.messages, now) for hash in dict.fromkeys(hashes)]
    await house.store.change("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", rows)


async def current_point(house: ServerContext, session_id: str, n: int) -> HistoryPoint:
    """The current point of a session."""
    info = await house.app.archive.info(session_id)
    return HistoryPoint(session_id=session_id, n=n, messages=info.message_count)


def point_of_run(run: Run) -> HistoryPoint:
    """The same for a session that holds only this run; later records are not counted."""
    return HistoryPoint(session_id=run.session_id, n=run.last_n, messages=run.message_total)


async def continue_from(house: ServerContext, spot: HistoryPoint) -> str:
    """The session to continue: the same one, or a fork if it has grown since. NotFound when it was
    deleted. It is claimed for the caller, who must start a run."""
    if house.runner.claim(spot.session_id):
        try:
            info = await house.app.archive.info(spot.session_id)
        except NotFound:
            house.runner.release_claim(spot.session_id)
            raise
        if info.message_count == spot.messages:
            return spot.session_id
        house.runner.release_claim(spot.session_id)
    return await house.app.archive.fork(spot.session_id, at=spot.n)


REPLY_SEPARATOR = "\n\n"


async def complete(house: ServerContext, call: HttpRequest) -> HttpResponse | None:
    body: ChatBody = call.body
    _check_body(house, body)
    wanted = split_input(chat_messages(body.messages, "messages"), "messages")
    on_leave = on_disconnect(call, "interrupt")
    if body.stream:
        run = await _start_turn(house, call, wanted, await claim_key(house, call))
        include_usage = body.stream_options is not None and body.stream_options.include_usage
        inline, is_owner = house.settings.inline_media, call.client.is_owner
        media = MediaFilter(lambda: run_images(run), inline=inline, any_file=is_owner)
        teller = ChatEncoder(house, run, media, include_usage=include_usage)
        await stream_run(house, call, run, teller, leaving=on_leave, headers=run_headers(run))
        return None

    async def work(ticket: IdempotencyClaim) -> HttpResponse:
        run = await _start_turn(house, call, wanted, ticket)
        await wait_for_run(house, call, run, leaving=on_leave)
        if (failed := run_error(run)) is not None:
            raise failed
        text = await display_text(house, call, run)
        return json_response(completion(house, run, text), headers=run_headers(run))

    return await run_once(house, call, work)


def effort_of(options: ModelOptions | None) -> Effort:
    return (options.reasoning_effort if options else None) or ""


def tier_of(*given: str | None) -> str:
    """The first tier given; `auto` and `default` mean none."""
    said = next((tier for tier in given if tier), "")
    return "" if said in ("auto", "default") else said


def run_headers(run: Run) -> Headers:
    return (
        (b"x-hermes-session-id", run.session_id.encode()),
        (b"x-hermes-run-id", run.id.encode()),
    )


async def display_text(
    house: ServerContext, call: HttpRequest, run: Run, text: str | None = None
) -> str:
    """The answer (or `text`) with its files shown for a client that may run on another machine."""
    if house.settings.inline_media:
        return await inline_images(run, any_file=call.client.is_owner, text=text)
    return replace_paths(run.text if text is None else text)


def completion(house: ServerContext, run: Run, text: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text}
    if images := run_images(run):
        message["images"] = [image_part(image) for image in images]
    return {
        "id": completion_id(run),
        "object": "chat.completion",
        "created": int(run.created_at),
        "model": house.model_name,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(run)}],
        "usage": chat_usage(usage_of(run)),
        "hermes": hermes_fields(run),
    }


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


def check_tools(house: ServerContext, *given: list[JsonObject] | None) -> None:
    """Refused by default: the agent never calls a client's tools."""
    if any(given) and not house.settings.ignore_client_tools:
        words = (
            "The agent uses its own tools; client tools are not supported "
            "(api_server.ignore_client_tools accepts such requests without them)."
        )
        raise HttpError(400, "unsupported_parameter", words, param="tools")


def _check_body(house: ServerContext, body: ChatBody) -> None:
    check_tools(house, body.tools, body.functions)
    if body.n is not None and body.n != 1:
        raise HttpError(400, "unsupported_parameter", "Only n = 1 is supported.", param="n")


async def _start_turn(
    house: ServerContext, call: HttpRequest, wanted: ParsedInput, ticket: IdempotencyClaim
) -> Run:
    """Start the turn in the session that the message belongs to."""
    house.admission.check()
    body: ChatBody = call.body
    options = body.model_options or ModelOptions()
    model, provider = await house.model(body.model, body.provider)
    kept = await store_images(house.app, wanted.now.urls, "messages")
    own = TurnRequest(
        session_id="",
        text=wanted.now.text,
        images=kept,
        source=call.client.source,
        instructions=wanted.system,
        model=model,
        provider=provider,
        effort=body.reasoning_effort or effort_of(body.model_options),
        tier=tier_of(body.service_tier, options.service_tier),
        is_retry=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
        principal=call.client.name,
    )
    named = call.headers.get("x-hermes-session-id")
    if named is not None:
        await house.session_or_none(named, call.client)
        request = replace(own, session_id=named, create="if_missing")
        return await start_run(house, request, ticket)
    request = await _resolve_session(house, call, own, wanted, ticket)
    is_whole = request.create == "always" and not request.history
    remember = _store_history(house, call, wanted, is_whole=is_whole)
    return await start_run(house, request, ticket, on_end=remember)


async def start_run(
    house: ServerContext,
    request: TurnRequest,
    ticket: IdempotencyClaim,
    *,
    persistent: bool = False,
    on_end: Callable[[Run], Awaitable[None]] | None = None,
) -> Run:
    """Start the run of a request; a repeated request gets the same run."""
    run_id = ticket.run_id or house.runner.new_run_id(request.session_id)
    reserved = await house.idempotency.reserve_run(ticket, run_id)
    if reserved != run_id:
        # A concurrent request with the same key was first.
        house.runner.release_claim(request.session_id)
        request = replace(
            request, session_id=session_of(reserved), create="if_missing", is_retry=True
        )
        run_id = reserved
    return await house.runner.start(run_id, request, persistent=persistent, on_end=on_end)


async def _resolve_session(
    house: ServerContext,
    call: HttpRequest,
    own: TurnRequest,
    wanted: ParsedInput,
    ticket: IdempotencyClaim,
) -> TurnRequest:
    if ticket.run_id:
        # An earlier attempt has chosen the session.
        session_id = session_of(ticket.run_id)
        began = await history_messages(house.app, wanted.before, "messages")
        return replace(own, session_id=session_id, create="if_missing", history=began)
    if wanted.before:
        hash = history_hash(call.owner_key, wanted.system, wanted.before)
        if (spot := await find_point(house, hash)) is not None:
            try:
                return replace(own, session_id=await continue_from(house, spot))
            except NotFound:
                # The session was deleted; the client still sends its history.
                pass
    began = await history_messages(house.app, wanted.before, "messages")
    return replace(own, session_id=house.runner.new_session_id(), create="always", history=began)


def _store_history(
    house: ServerContext, call: HttpRequest, wanted: ParsedInput, *, is_whole: bool
) -> Callable[[Run], Awaitable[None]]:
    """`is_whole` means that the session holds nothing but this run."""

    async def on_end(run: Run) -> None:
        """Store the history hash by which the next request finds this session."""
        if run_error(run) is not None:
            return
        spot = (
            point_of_run(run)
            if is_whole
            else await current_point(house, run.session_id, run.last_n)
        )
        told = (*wanted.before, wanted.now)
        streamed = REPLY_SEPARATOR.join(reply.text for reply in run.replies if reply.text)
        shown = [
            strip_images(await display_text(house, call, run, text))
            for text in (run.text, streamed)
        ]
        hashes = [
            history_hash(
                call.owner_key, wanted.system, (*told, ClientMessage(role="assistant", text=text))
            )
            for text in dict.fromkeys((run.text, streamed, *shown))
        ]
        await store_point(house, hashes, spot)

    return on_end


class ChatEncoder:
    """Encodes a run as chat completion chunks. Their common part is encoded once."""

    def __init__(
        self, house: ServerContext, run: Run, media: MediaFilter, *, include_usage: bool
    ) -> None:
        self._media = media
        head = {
            "id": completion_id(run),
            "object": "chat.completion.chunk",
            "created": int(run.created_at),
            "model": house.model_name,
        }
        self._head = b"data: " + encode(head)[:-1] + b',"choices":['
        self._before = self._head + b'{"index":0,"delta":{"content":'
        self._thought = self._head + b'{"index":0,"delta":{"reasoning_content":'
        self._after = b'},"finish_reason":null}]}\n\n'
        self._nothing = b'{"index":0,"delta":{},"finish_reason":null}]'
        self._include_usage = include_usage
        self._shows_reasoning = house.settings.show_reasoning
        self._deeds = ToolCallTracker()
        self._has_text = False
        self._is_new_reply = False

    def begin(self) -> bytes:
        return self._head + b'{"index":0,"delta":{"role":"assistant","content":""' + self._after

    def encode(self, moment: RunEvent) -> bytes:
        match moment:
            case TextPiece(text=text, is_text=True):
                return self._chunk(self._media.feed(text))
            case TextPiece(text=text):
                return self._thought + encode(text) + self._after if self._shows_reasoning else b""
            case RecordAdded(record=record):
                told = b""
                if isinstance(record.event, ReplyAdded):
                    told = self._chunk(self._media.flush())
                    self._is_new_reply = True
                return told + b"".join([self._progress(d) for d in self._deeds.apply(record.event)])
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
        told = self._chunk(self._media.flush())
        for picture in self._media.remaining_images():
            self._is_new_reply = True
            told += self._chunk(picture)
        told += self._head + encode(choice) + b"]" + facts + b"}\n\n"
        if self._include_usage:
            told += self._head + b'],"usage":' + usage + b"}\n\n"
        return told + b"data: [DONE]\n\n"

    def _chunk(self, text: str) -> bytes:
        if not text:
            return b""
        if self._is_new_reply and self._has_text:
            text = REPLY_SEPARATOR + text
        self._has_text, self._is_new_reply = True, False
        return self._before + encode(text) + self._after

    def _progress(self, deed: CallStarted | CallFinished) -> bytes:
        """A Hermes event that is also a chunk: official clients parse every event as one."""
        if deed.call.name.startswith("_"):
            return b""
        facts = encode(_progress_fields(deed))[1:]
        return (
            b"event: hermes.tool.progress\n" + self._head + self._nothing + b"," + facts + b"\n\n"
        )


def _progress_fields(deed: CallStarted | CallFinished) -> JsonObject:
    call = deed.call
    facts: JsonObject = {"toolCallId": call.id, "tool": call.name}
    match deed:
        case CallStarted():
            told = describe_call(call)
            return facts | {"emoji": told.emoji, "label": told.detail, "status": "running"}
        case CallFinished(result=result, seconds=seconds):
            return facts | {
                "status": "completed",
                "duration_ms": round(seconds * 1000),
                "is_error": result.failed,
            }
