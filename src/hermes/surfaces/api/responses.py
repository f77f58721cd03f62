"""`/v1/responses`: runs turns as OpenAI responses that are stored and can be continued."""

from __future__ import annotations

import asyncio
from functools import partial
from sqlite3 import Connection
from typing import Any

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject, replace
from hermes.core.errors import NotFound
from hermes.core.messages import Usage
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.run import Run, session_of
from hermes.surfaces.api.bodies import (
    ConversationName,
    ParsedInput,
    ResponsesBody,
    chat_messages,
    check_text_format,
    history_messages,
    input_items,
    split_input,
)
from hermes.surfaces.api.encoding import (
    finish_reason,
    hermes_fields,
    run_error,
    usage_of,
)
from hermes.surfaces.api.http import JSON, ApiRequest, ApiResponse, HttpError, json_response
from hermes.surfaces.api.response_items import (
    IMAGE_PATH,
    ItemEncoder,
    output_items,
    with_image_data,
)
from hermes.surfaces.api.server_context import ServerContext
from hermes.surfaces.api.turns import (
    HistoryPoint,
    answer_turn,
    check_tools,
    continue_from,
    current_point,
    start_run,
    stream_turn,
    tier_of,
    turn_request,
)


async def store_response(
    server: ServerContext, owner: str, response: JsonObject, point: HistoryPoint, conversation: str
) -> None:
    """Durable when it returns. Evicts the least recently used responses."""
    now, most = server.app.context.world.clock.now(), server.settings.stored_responses
    position = (point.session_id, point.n, point.messages)
    row = (response["id"], owner, *position, encode(response), now, now)

    def work(db: Connection) -> None:
        db.execute("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if conversation:
            named = (owner, conversation, response["id"])
            db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", named)
        old = "SELECT id FROM responses ORDER BY accessed_at DESC LIMIT -1 OFFSET ?"
        for (id,) in db.execute(old, (most,)).fetchall():
            _remove(db, id)

    await server.store.run(work, durable=True)


async def response_point(server: ServerContext, owner: str, response_id: str) -> HistoryPoint:
    """The history point of a response; raises HttpError 404 when it is not stored."""
    columns, param = "session_id, n, messages", "previous_response_id"
    row = await _load(server, owner, response_id, columns, param)
    return HistoryPoint(session_id=row[0], n=row[1], messages=row[2])


async def _load(
    server: ServerContext, owner: str, response_id: str, columns: str, param: str
) -> tuple[Any, ...]:
    now = server.app.context.world.clock.now()

    def work(db: Connection) -> tuple[Any, ...] | None:
        query = f"SELECT {columns} FROM responses WHERE id = ? AND client = ?"
        row: tuple[Any, ...] | None = db.execute(query, (response_id, owner)).fetchone()
        db.execute("UPDATE responses SET accessed_at = ? WHERE id = ?", (now, response_id))
        return row

    point = await server.store.run(work)
    if point is None:
        raise response_not_found(param)
    return point


async def latest_response(server: ServerContext, owner: str, conversation: str) -> str:
    """The id of the latest response of a conversation, "" when it is new."""
    query = "SELECT response_id FROM conversations WHERE client = ? AND name = ?"
    row = await server.store.run(lambda db: db.execute(query, (owner, conversation)).fetchone())
    return row[0] if row else ""


def _remove(db: Connection, response_id: str) -> None:
    db.execute("DELETE FROM responses WHERE id = ?", (response_id,))
    db.execute("DELETE FROM conversations WHERE response_id = ?", (response_id,))


def response_not_found(param: str) -> HttpError:
    return HttpError(404, "response_not_found", "There is no such response.", param=param)


async def create_response(server: ServerContext, request: ApiRequest) -> ApiResponse | None:
    body: ResponsesBody = request.body
    check_tools(server, body.tools)
    check_text_format(body.text.format if body.text else None, "text.format")
    if body.background:
        message = "Use `/v1/runs` for background turns."
        raise HttpError(400, "unsupported_parameter", message, param="background")
    if body.previous_response_id and body.conversation:
        message = "Give `previous_response_id` or `conversation`, not both."
        raise HttpError(400, "invalid_value", message, param="previous_response_id")
    history = chat_messages(body.conversation_history or (), "conversation_history")
    messages = [*history, *input_items(body.input)]
    parsed = split_input(messages, "input", system=body.instructions or "")
    start = partial(_start_turn, server, request, parsed)
    if body.stream:
        await stream_turn(server, request, start, partial(ResponseEncoder, server, body))
        return None

    async def encode_run(run: Run) -> JsonObject:
        return await with_images(response_of(server, body, run))

    return await answer_turn(server, request, start, encode_run)


async def show_response(server: ServerContext, request: ApiRequest) -> ApiResponse:
    id = request.path_params["id"]
    data: bytes = (await _load(server, request.owner_key, id, "data", "response_id"))[0]
    if IMAGE_PATH.encode() in data:
        return json_response(await with_images(decode(dict, data)))
    return ApiResponse(status=200, body=data, headers=JSON)


async def delete_response(server: ServerContext, request: ApiRequest) -> ApiResponse:
    response_id = request.path_params["id"]

    def work(db: Connection) -> bool:
        query = "SELECT 1 FROM responses WHERE id = ? AND client = ?"
        if db.execute(query, (response_id, request.owner_key)).fetchone() is None:
            return False
        _remove(db, response_id)
        return True

    if not await server.store.run(work, durable=True):
        raise response_not_found("response_id")
    return json_response({"id": response_id, "object": "response", "deleted": True})


def _conversation(body: ResponsesBody) -> str:
    named = body.conversation
    return named.id if isinstance(named, ConversationName) else named or ""


async def _start_turn(
    server: ServerContext, request: ApiRequest, parsed: ParsedInput, claim: IdempotencyClaim
) -> Run:
    server.admission.check()
    body: ResponsesBody = request.body
    own = await turn_request(
        server,
        request,
        parsed,
        claim,
        param="input",
        effort=(body.reasoning.effort if body.reasoning else None) or "",
        tier=tier_of(body.service_tier),
    )
    history = await history_messages(server.app.context, parsed.before, "input")
    previous = body.previous_response_id or ""
    if name := _conversation(body):
        previous = await latest_response(server, request.owner_key, name)
    named = request.headers.get("x-hermes-session-id")
    session_id = await continued_session(server, request, claim, previous=previous, named=named)
    turn = replace(
        own,
        session_id=session_id or server.run_executor.new_session_id(),
        history=history,
        create="if_missing" if session_id else "always",
    )

    async def on_end(run: Run) -> None:
        """Store the response even if the client disconnected, so that it can be continued."""
        if body.store is False or run_error(run) is not None:
            return
        point = await current_point(server, run.session_id, run.last_n)
        response = response_of(server, body, run)
        await store_response(server, request.owner_key, response, point, _conversation(body))

    return await start_run(server, turn, claim, on_end=on_end)


async def continued_session(
    server: ServerContext,
    request: ApiRequest,
    claim: IdempotencyClaim,
    *,
    previous: str,
    named: str | None,
) -> str:
    """The session to continue, "" for a new one: that of an earlier attempt, of the `previous`
    response, or the `named` one."""
    if claim.run_id:
        return session_of(claim.run_id)
    if previous:
        point = await response_point(server, request.owner_key, previous)
        try:
            return await continue_from(server, point)
        except NotFound as error:
            raise response_not_found("previous_response_id") from error
    if named is not None:
        await server.session_or_none(named, request.client)
    return named or ""


async def with_images(response: JsonObject) -> JsonObject:
    """The response with image data; the stored form holds only paths."""
    return await asyncio.to_thread(_with_images, response)


def _with_images(response: JsonObject) -> JsonObject:
    return {**response, "output": [with_image_data(item) for item in response["output"]]}


def response_of(server: ServerContext, body: ResponsesBody, run: Run) -> JsonObject:
    failed = run_error(run) if run.is_over else None
    error = {"code": "server_error", "message": str(failed)} if failed is not None else None
    why = ""
    if not run.is_over:
        status = "in_progress"
    elif failed is not None:
        status = "failed"
    elif run.status == "cancelled":
        status, why = "incomplete", "interrupted"
    elif finish_reason(run) == "length":
        status, why = "incomplete", "max_output_tokens"
    else:
        status = "completed"
    conversation = _conversation(body)
    return {
        "id": f"resp_{run.id.removeprefix('run_')}",
        "object": "response",
        "created_at": int(run.created_at),
        "status": status,
        "error": error,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": body.instructions,
        "metadata": body.metadata or {},
        "model": server.model_name,
        "output": output_items(run, reasoning=server.settings.show_reasoning),
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


class ResponseEncoder(ItemEncoder):
    def __init__(self, server: ServerContext, body: ResponsesBody, run: Run) -> None:
        super().__init__(run, reasoning=server.settings.show_reasoning)
        self._server = server
        self._body = body

    def begin(self) -> bytes:
        begun = response_of(self._server, self._body, self._run)
        begun |= {"status": "in_progress", "output": [], "output_text": "", "usage": None}
        facts = {"response": begun}
        return self.event("response.created", facts) + self.event("response.in_progress", facts)

    def end(self, run: Run) -> bytes:
        response = _with_images(response_of(self._server, self._body, run))
        return self.close() + self.event(f"response.{response['status']}", {"response": response})
