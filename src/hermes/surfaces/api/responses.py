"""`/v1/responses`: runs turns as OpenAI responses that are stored and can be continued."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from sqlite3 import Connection

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import NotFound
from hermes.core.messages import Usage
from hermes.hosting.follower import RunEvent
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run, session_of
from hermes.surfaces.api.bodies import (
    ConversationName,
    ParsedInput,
    ResponseBody,
    chat_messages,
    history_messages,
    input_items,
    split_input,
    store_images,
)
from hermes.surfaces.api.chat import (
    HistoryPoint,
    check_tools,
    continue_from,
    current_point,
    run_headers,
    start_run,
    tier_of,
)
from hermes.surfaces.api.encoding import (
    finish_reason,
    hermes_fields,
    run_error,
    stream_run,
    usage_of,
    wait_for_run,
)
from hermes.surfaces.api.http import JSON, HttpError, HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.idempotency_key import claim_key, run_once
from hermes.surfaces.api.response_items import (
    IMAGE_PATH,
    ItemEncoder,
    output_items,
    with_image_data,
)
from hermes.surfaces.api.server_context import ServerContext, on_disconnect


async def store_response(
    house: ServerContext, whose: str, response: JsonObject, spot: HistoryPoint, conversation: str
) -> None:
    """Durable when it returns. Evicts the least recently used responses."""
    now, most = house.app.run.world.clock.now(), house.settings.stored_responses
    place = (spot.session_id, spot.n, spot.messages)
    row = (response["id"], whose, *place, encode(response), now, now)

    def work(db: Connection) -> None:
        db.execute("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if conversation:
            named = (whose, conversation, response["id"])
            db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", named)
        old = "SELECT id FROM responses ORDER BY accessed_at DESC LIMIT -1 OFFSET ?"
        for (id,) in db.execute(old, (most,)).fetchall():
            _remove(db, id)

    await house.store.run(work, durable=True)


async def load_response(house: ServerContext, whose: str, response_id: str) -> bytes:
    now = house.app.run.world.clock.now()

    def work(db: Connection) -> bytes | None:
        query = "SELECT data FROM responses WHERE id = ? AND client = ?"
        row = db.execute(query, (response_id, whose)).fetchone()
        db.execute("UPDATE responses SET accessed_at = ? WHERE id = ?", (now, response_id))
        return row[0] if row else None

    found = await house.store.run(work)
    if found is None:
        raise response_not_found("response_id")
    return found


async def response_point(house: ServerContext, whose: str, response_id: str) -> HistoryPoint:
    """The history point of a response; HttpError 404 when it is not stored."""
    now = house.app.run.world.clock.now()

    def work(db: Connection) -> HistoryPoint | None:
        query = "SELECT session_id, n, messages FROM responses WHERE id = ? AND client = ?"
        row = db.execute(query, (response_id, whose)).fetchone()
        db.execute("UPDATE responses SET accessed_at = ? WHERE id = ?", (now, response_id))
        return HistoryPoint(session_id=row[0], n=row[1], messages=row[2]) if row else None

    found = await house.store.run(work)
    if found is None:
        raise response_not_found("previous_response_id")
    return found


async def latest_response(house: ServerContext, whose: str, conversation: str) -> str:
    """The id of the latest response of a conversation, "" when it is new."""
    query = "SELECT response_id FROM conversations WHERE client = ? AND name = ?"
    row = await house.store.run(lambda db: db.execute(query, (whose, conversation)).fetchone())
    return row[0] if row else ""


async def remove_response(house: ServerContext, whose: str, response_id: str) -> None:
    def work(db: Connection) -> bool:
        query = "SELECT 1 FROM responses WHERE id = ? AND client = ?"
        if db.execute(query, (response_id, whose)).fetchone() is None:
            return False
        _remove(db, response_id)
        return True

    if not await house.store.run(work, durable=True):
        raise response_not_found("response_id")


def _remove(db: Connection, response_id: str) -> None:
    db.execute("DELETE FROM responses WHERE id = ?", (response_id,))
    db.execute("DELETE FROM conversations WHERE response_id = ?", (response_id,))


def response_not_found(param: str) -> HttpError:
    return HttpError(404, "response_not_found", "There is no such response.", param=param)


async def create_response(house: ServerContext, call: HttpRequest) -> HttpResponse | None:
    body: ResponseBody = call.body
    _check(house, body)
    history = chat_messages(body.conversation_history or (), "conversation_history")
    said = [*history, *input_items(body.input)]
    wanted = split_input(said, "input", system=body.instructions or "")
    on_leave = on_disconnect(call, "interrupt")
    if body.stream:
        run = await _start_turn(house, call, wanted, await claim_key(house, call))
        teller = ResponseEncoder(house, call, run)
        await stream_run(house, call, run, teller, leaving=on_leave, headers=run_headers(run))
        return None

    async def work(ticket: IdempotencyClaim) -> HttpResponse:
        run = await _start_turn(house, call, wanted, ticket)
        await wait_for_run(house, call, run, leaving=on_leave)
        if (failed := run_error(run)) is not None:
            raise failed
        told = await with_images(response_of(house, call.body, run))
        return json_response(told, headers=run_headers(run))

    return await run_once(house, call, work)


async def show_response(house: ServerContext, call: HttpRequest) -> HttpResponse:
    data = await load_response(house, call.owner_key, call.path_params["id"])
    if IMAGE_PATH.encode() in data:
        return json_response(await with_images(decode(dict, data)))
    return HttpResponse(status=200, body=data, headers=JSON)


async def delete_response(house: ServerContext, call: HttpRequest) -> HttpResponse:
    await remove_response(house, call.owner_key, call.path_params["id"])
    return json_response({"id": call.path_params["id"], "object": "response", "deleted": True})


async def stored_point(house: ServerContext, whose: str, response_id: str) -> HistoryPoint:
    return await response_point(house, whose, response_id)


def _check(house: ServerContext, body: ResponseBody) -> None:
    check_tools(house, body.tools)
    if body.background:
        words = "Use `/v1/runs` for background turns."
        raise HttpError(400, "unsupported_parameter", words, param="background")
    if body.previous_response_id and body.conversation:
        words = "Give `previous_response_id` or `conversation`, not both."
        raise HttpError(400, "invalid_value", words, param="previous_response_id")


def _conversation(body: ResponseBody) -> str:
    named = body.conversation
    return named.id if isinstance(named, ConversationName) else named or ""


async def _start_turn(
    house: ServerContext, call: HttpRequest, wanted: ParsedInput, ticket: IdempotencyClaim
) -> Run:
    house.admission.check()
    body: ResponseBody = call.body
    model, provider = await house.model(body.model, body.provider)
    kept = await store_images(house.app, wanted.now.urls, "input")
    began = await history_messages(house.app, wanted.before, "input")
    session_id = await _place(house, call, ticket)
    request = TurnRequest(
        session_id=session_id or house.runner.new_session_id(),
        text=wanted.now.text,
        images=kept,
        source=call.client.source,
        instructions=wanted.system,
        history=began,
        model=model,
        provider=provider,
        effort=(body.reasoning.effort if body.reasoning else None) or "",
        tier=tier_of(body.service_tier),
        create="if_missing" if session_id else "always",
        is_retry=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
        principal=call.client.name,
    )
    return await start_run(house, request, ticket, on_end=_store(house, call))


async def _place(house: ServerContext, call: HttpRequest, ticket: IdempotencyClaim) -> str:
    """The session to continue, "" for a new one."""
    body: ResponseBody = call.body
    if ticket.run_id:
        return session_of(ticket.run_id)
    previous = body.previous_response_id or ""
    if name := _conversation(body):
        previous = await latest_response(house, call.owner_key, name)
    if previous:
        spot = await response_point(house, call.owner_key, previous)
        try:
            return await continue_from(house, spot)
        except NotFound as error:
            raise response_not_found("previous_response_id") from error
    named = call.headers.get("x-hermes-session-id")
    if named is not None:
        await house.session_or_none(named, call.client)
    return named or ""


def _store(house: ServerContext, call: HttpRequest) -> Callable[[Run], Awaitable[None]]:
    async def on_end(run: Run) -> None:
        """Store the response even if the client disconnected, so that it can be continued."""
        body: ResponseBody = call.body
        if body.store is False or run_error(run) is not None:
            return
        spot = await current_point(house, run.session_id, run.last_n)
        response = response_of(house, body, run)
        await store_response(house, call.owner_key, response, spot, _conversation(body))

    return on_end


async def with_images(response: JsonObject) -> JsonObject:
    """The response with image data; the stored form holds only paths."""
    return await asyncio.to_thread(_with_images, response)


def _with_images(response: JsonObject) -> JsonObject:
    return {**response, "output": [with_image_data(item) for item in response["output"]]}


def response_id(run: Run) -> str:
    return f"resp_{run.id.removeprefix('run_')}"


def response_of(house: ServerContext, body: ResponseBody, run: Run) -> JsonObject:
    status, why = _status(run)
    failed = run_error(run) if run.is_over else None
    conversation = _conversation(body)
    error = {"code": "server_error", "message": str(failed)} if failed is not None else None
    return {
        "id": response_id(run),
        "object": "response",
        "created_at": int(run.created_at),
        "status": status,
        "error": error,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": body.instructions,
        "metadata": body.metadata or {},
        "model": house.model_name,
        "output": output_items(run, reasoning=house.settings.show_reasoning),
        "output_text": run.text,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "previous_response_id": body.previous_response_id,
        "conversation": {"id": conversation} if conversation else None,
        "usage": response_usage(usage_of(run)) if run.is_over else None,
        "hermes": hermes_fields(run),
    }


def response_usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.prompt,
        "output_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _status(run: Run) -> tuple[str, str]:
    """The status, and the reason when it is incomplete."""
    if not run.is_over:
        return "in_progress", ""
    if run_error(run) is not None:
        return "failed", ""
    if run.status == "cancelled":
        return "incomplete", "interrupted"
    if finish_reason(run) == "length":
        return "incomplete", "max_output_tokens"
    return "completed", ""


class ResponseEncoder:
    def __init__(self, house: ServerContext, call: HttpRequest, run: Run) -> None:
        self._house = house
        self._body: ResponseBody = call.body
        self._run = run
        self._items = ItemEncoder(run, reasoning=house.settings.show_reasoning)

    def begin(self) -> bytes:
        begun = response_of(self._house, self._body, self._run)
        begun |= {"status": "in_progress", "output": [], "output_text": "", "usage": None}
        facts = {"response": begun}
        return self._items.event("response.created", facts) + self._items.event(
            "response.in_progress", facts
        )

    def encode(self, moment: RunEvent) -> bytes:
        return self._items.encode(moment)

    def end(self, run: Run) -> bytes:
        whole_response = _with_images(response_of(self._house, self._body, run))
        told = self._items.close()
        kind = f"response.{whole_response['status']}"
        return told + self._items.event(kind, {"response": whole_response})
