"""`/v1/chat/completions`: runs one turn and encodes it as an OpenAI chat completion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.describe import describe
from hermes.commands.drawn import image_part
from hermes.config.kinds import Effort
from hermes.core.errors import NotFound
from hermes.core.events import ReplyAdded
from hermes.core.messages import Usage
from hermes.surfaces.api.asking import Asked, asked, chat_messages
from hermes.surfaces.api.bodies import ChatBody, ModelOptions
from hermes.surfaces.api.call import Answer, Call, answer
from hermes.surfaces.api.content import Spoken, images, past
from hermes.surfaces.api.deeds import Begun, Deeds, Done
from hermes.surfaces.api.errand import Errand
from hermes.surfaces.api.follower import Anew, Happened, Moment, Piece
from hermes.surfaces.api.house import House, leaving
from hermes.surfaces.api.media import Stream, bare, named, pictured
from hermes.surfaces.api.once import Ticket, keep_run, once, take_ticket
from hermes.surfaces.api.outcomes import extra_facts, failure_of, finish_reason, usage_of
from hermes.surfaces.api.refusals import Headers, Refusal
from hermes.surfaces.api.run import Run
from hermes.surfaces.api.sse import pour, whole
from hermes.surfaces.api.threads import find_spot, go_on, keep_spot, spot_in, spot_of, thread

BETWEEN = "\n\n"


async def complete(house: House, call: Call) -> Answer | None:
    body: ChatBody = call.body
    _check(house, body)
    wanted = asked(chat_messages(body.messages, "messages"), "messages")
    on_leave = leaving(call, "interrupt")
    if body.stream:
        run = await _begin(house, call, wanted, await take_ticket(house, call))
        include_usage = body.stream_options is not None and body.stream_options.include_usage
        inline, is_owner = house.settings.inline_media, call.client.is_owner
        media = Stream(lambda: run.images, inline=inline, any_file=is_owner)
        teller = ChatTeller(house, run, media, include_usage=include_usage)
        await pour(house, call, run, teller, leaving=on_leave, headers=run_headers(run))
        return None

    async def work(ticket: Ticket) -> Answer:
        run = await _begin(house, call, wanted, ticket)
        await whole(house, call, run, leaving=on_leave)
        if (failed := failure_of(run)) is not None:
            raise failed
        text = await shown_text(house, call, run)
        return answer(completion(house, run, text), headers=run_headers(run))

    return await once(house, call, work)


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


async def shown_text(house: House, call: Call, run: Run, text: str | None = None) -> str:
    """The answer (or `text`) with its files shown for a client that may run on another machine."""
    if house.settings.inline_media:
        return await pictured(run, any_file=call.client.is_owner, text=text)
    return named(run.text if text is None else text)


def completion(house: House, run: Run, text: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text}
    if run.images:
        message["images"] = [image_part(image) for image in run.images]
    return {
        "id": completion_id(run),
        "object": "chat.completion",
        "created": int(run.created_at),
        "model": house.model_name,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(run)}],
        "usage": chat_usage(usage_of(run)),
        "hermes": extra_facts(run),
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


def check_tools(house: House, *given: list[JsonObject] | None) -> None:
    """Refused by default: the agent never calls a client's tools."""
    if any(given) and not house.settings.ignore_client_tools:
        words = (
            "The agent uses its own tools; client tools are not supported "
            "(api_server.ignore_client_tools accepts such requests without them)."
        )
        raise Refusal(400, "unsupported_parameter", words, param="tools")


def _check(house: House, body: ChatBody) -> None:
    check_tools(house, body.tools, body.functions)
    if body.n is not None and body.n != 1:
        raise Refusal(400, "unsupported_parameter", "Only n = 1 is supported.", param="n")


async def _begin(house: House, call: Call, wanted: Asked, ticket: Ticket) -> Run:
    """Start the turn in the session that the message belongs to."""
    house.desk.admit()
    body: ChatBody = call.body
    options = body.model_options or ModelOptions()
    model, provider = await house.model(body.model, body.provider)
    kept = await images(house.app, wanted.now.urls, "messages")
    own = Errand(
        session_id="",
        text=wanted.now.text,
        images=kept,
        source=call.client.source,
        extra=wanted.system,
        model=model,
        provider=provider,
        effort=body.reasoning_effort or effort_of(body.model_options),
        tier=tier_of(body.service_tier, options.service_tier),
        again=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
    )
    named = call.headers.get("x-hermes-session-id")
    if named is not None:
        await house.session_or_none(named, call.client)
        errand = _changed(own, session_id=named, create="if_missing")
        return await start(house, errand, ticket)
    errand = await _in_thread(house, call, own, wanted, ticket)
    is_whole = errand.create == "always" and not errand.past
    remember = _remember(house, call, wanted, is_whole=is_whole)
    return await start(house, errand, ticket, on_end=remember)


async def start(
    house: House,
    errand: Errand,
    ticket: Ticket,
    *,
    kept: bool = False,
    on_end: Callable[[Run], Awaitable[None]] | None = None,
) -> Run:
    """Start the run of a request; a repeated request gets the same run."""
    run_id = ticket.run_id or house.desk.new_run_id(errand.session_id)
    await keep_run(house, ticket, run_id)
    return await house.desk.begin(run_id, errand, kept=kept, on_end=on_end)


async def _in_thread(
    house: House, call: Call, own: Errand, wanted: Asked, ticket: Ticket
) -> Errand:
    if ticket.run_id:
        # An earlier attempt has chosen the session.
        session_id = ticket.run_id.removeprefix("run_").rpartition("_")[0]
        began = await past(house.app, wanted.before, "messages")
        return _changed(own, session_id=session_id, create="if_missing", past=began)
    if wanted.before:
        hash = thread(call.whose, wanted.system, wanted.before)
        if (spot := await find_spot(house, hash)) is not None:
            try:
                return _changed(own, session_id=await go_on(house, spot))
            except NotFound:
                # The session was deleted; the client still sends its history.
                pass
    began = await past(house.app, wanted.before, "messages")
    return _changed(own, session_id=house.desk.new_session_id(), create="always", past=began)


def _remember(
    house: House, call: Call, wanted: Asked, *, is_whole: bool
) -> Callable[[Run], Awaitable[None]]:
    """`is_whole` means that the session holds nothing but this run."""

    async def on_end(run: Run) -> None:
        """Store the history hash by which the next request finds this session."""
        if failure_of(run) is not None:
            return
        spot = spot_in(run) if is_whole else await spot_of(house, run.session_id, run.last_n)
        told = (*wanted.before, wanted.now)
        streamed = BETWEEN.join(reply.text for reply in run.replies if reply.text)
        shown = [bare(await shown_text(house, call, run, text)) for text in (run.text, streamed)]
        hashes = [
            thread(call.whose, wanted.system, (*told, Spoken(role="assistant", text=text)))
            for text in dict.fromkeys((run.text, streamed, *shown))
        ]
        await keep_spot(house, hashes, spot)

    return on_end


def _changed(errand: Errand, **changes: object) -> Errand:
    fields = {name: getattr(errand, name) for name in errand.__struct_fields__}
    return Errand(**(fields | changes))


class ChatTeller:
    """Encodes a run as chat completion chunks. Their common part is encoded once."""

    def __init__(self, house: House, run: Run, media: Stream, *, include_usage: bool) -> None:
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
        self._deeds = Deeds()
        self._has_text = False
        self._is_new_reply = False

    def begin(self) -> bytes:
        return self._head + b'{"index":0,"delta":{"role":"assistant","content":""' + self._after

    def tell(self, moment: Moment) -> bytes:
        match moment:
            case Piece(text=text, is_text=True):
                return self._chunk(self._media.pass_on(text))
            case Piece(text=text):
                return self._thought + encode(text) + self._after if self._shows_reasoning else b""
            case Happened(record=record):
                told = b""
                if isinstance(record.event, ReplyAdded):
                    told = self._chunk(self._media.rest())
                    self._is_new_reply = True
                return told + b"".join([self._progress(d) for d in self._deeds.hear(record.event)])
            case Anew():
                self._media.rest()
                self._is_new_reply = True
                return b"event: hermes.message.restarted\n" + self._head + self._nothing + b"}\n\n"

    def end(self, run: Run) -> bytes:
        if (failed := failure_of(run)) is not None:
            return b"data: " + failed.body + b"\n\ndata: [DONE]\n\n"
        delta = {"images": [image_part(image) for image in run.images]} if run.images else {}
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason(run)}
        usage = encode(chat_usage(usage_of(run)))
        facts = b',"hermes":' + encode(extra_facts(run))
        told = self._chunk(self._media.rest())
        for picture in self._media.pictures():
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
            text = BETWEEN + text
        self._has_text, self._is_new_reply = True, False
        return self._before + encode(text) + self._after

    def _progress(self, deed: Begun | Done) -> bytes:
        """A Hermes event that is also a chunk: official clients parse every event as one."""
        if deed.call.name.startswith("_"):
            return b""
        facts = encode(_facts(deed))[1:]
        return (
            b"event: hermes.tool.progress\n" + self._head + self._nothing + b"," + facts + b"\n\n"
        )


def _facts(deed: Begun | Done) -> JsonObject:
    call = deed.call
    facts: JsonObject = {"toolCallId": call.id, "tool": call.name}
    match deed:
        case Begun():
            told = describe(call)
            return facts | {"emoji": told.emoji, "label": told.detail, "status": "running"}
        case Done(result=result, seconds=seconds):
            return facts | {
                "status": "completed",
                "duration_ms": round(seconds * 1000),
                "is_error": result.failed,
            }
