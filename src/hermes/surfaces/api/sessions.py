"""`/api/sessions`: lists, reads, renames, forks, continues and deletes sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from hermes.codec.values import JsonObject, replace
from hermes.core.errors import NotFound
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run
from hermes.journal.listing import SessionFilter, SessionInfo
from hermes.surfaces.api.bodies import (
    ForkBody,
    SessionBody,
    SessionChatBody,
    SessionPatch,
    input_items,
    split_input,
)
from hermes.surfaces.api.encoding import hermes_fields, usage_of
from hermes.surfaces.api.http import ApiRequest, ApiResponse, HttpError, json_response
from hermes.surfaces.api.responses import response_usage
from hermes.surfaces.api.runs import RunEncoder
from hermes.surfaces.api.server_context import ServerContext
from hermes.surfaces.api.turns import answer_turn, start_run, stream_turn, turn_request

# Search hits that are grouped into sessions.
MOST_HITS = 200
MAX_LISTED = 500
PREVIEW_CHARS = 4_096
# Sessions that belong to another session.
CHILD = "subagent"


async def list_sessions(server: ServerContext, request: ApiRequest) -> ApiResponse:
    limit = request.number("limit", 50, least=1, most=MAX_LISTED)
    offset = request.number("offset", 0, most=100_000)
    source = request.query.get("source") if request.client.is_owner else request.client.source
    children = request.flag("include_children")
    filter = SessionFilter(source=source, exclude_sources=() if children else (CHILD,))
    query = (request.query.get("q") or "").strip()
    archived = request.flag("archived") if "archived" in request.query else None
    if query:
        rows = await _search(server, filter, query, archived)
    else:
        filter = replace(filter, archived=bool(archived))
        rows = await server.app.archive.recent(filter, limit=offset + limit + 1)
    page = rows[offset : offset + limit]
    return json_response(
        {
            "sessions": [_list_item(info) for info in page],
            "limit": limit,
            "offset": offset,
            "has_more": len(rows) > offset + limit,
        }
    )


async def _search(
    server: ServerContext, filter: SessionFilter, query: str, archived: bool | None
) -> Sequence[SessionInfo]:
    """Sessions whose title or messages match, last used first; archived ones are included unless
    `archived` is False."""
    archive = server.app.archive
    titled = await archive.recent(replace(filter, title=query, archived=archived), limit=None)
    by_id = {info.id: info for info in titled}
    for hit in await archive.search(query, limit=MOST_HITS):
        if hit.session_id in by_id:
            continue
        with suppress(NotFound):
            info = await archive.info(hit.session_id)
            is_from = filter.source in (None, info.source)
            is_excluded = info.source in filter.exclude_sources
            if archived in (None, info.archived) and is_from and not is_excluded:
                by_id[info.id] = info
    return sorted(by_id.values(), key=lambda info: info.last_at, reverse=True)


async def create_session(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """Reserve an id. A session without a title is stored from its first message on."""
    body: SessionBody = request.body
    session_id = body.id or server.run_executor.new_session_id()
    if await server.session_or_none(session_id, request.client) is not None:
        raise HttpError(409, "session_exists", "A session with this id already exists.", param="id")
    title = (body.title or "").strip()
    if not title:
        return json_response({"id": session_id, "source": request.client.source}, 201)
    opening = TurnRequest(
        session_id=session_id,
        text="",
        source=request.client.source,
        create="always",
        confined=not request.client.is_owner,
        person=request.person,
    )
    await server.run_executor.create_session(opening, title)
    return json_response(_list_item(await server.session(session_id, request.client)), 201)


async def show_session(server: ServerContext, request: ApiRequest) -> ApiResponse:
    info = await server.session(request.path_params["id"], request.client)
    runs = server.run_executor.active_runs(info.id)
    return json_response({**_list_item(info), "active_runs": runs})


async def change_session(server: ServerContext, request: ApiRequest) -> ApiResponse:
    body: SessionPatch = request.body
    info = await server.session(request.path_params["id"], request.client)
    async with server.pool.pin(info.id):
        if body.title is not None:
            await server.app.archive.rename(info.id, body.title)
        if body.archived is not None:
            await server.app.archive.set_archived(info.id, away=body.archived)
    return await show_session(server, request)


async def delete_session(server: ServerContext, request: ApiRequest) -> ApiResponse:
    info = await server.session(request.path_params["id"], request.client)
    async with server.pool.exclusive(info.id):
        await server.app.archive.delete(info.id)
    return json_response({"id": info.id, "deleted": True})


async def session_messages(server: ServerContext, request: ApiRequest) -> ApiResponse:
    info = await server.session(request.path_params["id"], request.client)
    limit = request.number("limit", 100, least=1, most=1_000)
    after = request.number("after", 0, most=999_999_999)
    full = request.query.get("full") == "1"
    messages = [each for each in await server.app.archive.conversation(info.id) if each.n > after]
    shown: list[JsonObject] = []
    for each in messages[:limit]:
        text, cut = each.text, False
        if each.role == "tool" and len(text) > PREVIEW_CHARS and not full:
            text, cut = text[:PREVIEW_CHARS], True
        shown.append(
            {
                "n": each.n,
                "at": each.at,
                "role": each.role,
                "text": text,
                "shortened": cut,
                "tool": each.tool,
                "calls": list(each.calls),
            }
        )
    return json_response({"messages": shown, "has_more": len(messages) > limit})


async def fork_session(server: ServerContext, request: ApiRequest) -> ApiResponse:
    body: ForkBody = request.body
    info = await server.session(request.path_params["id"], request.client)
    forked = await server.app.archive.fork(info.id, at=body.at_message, title=body.title or "")
    return json_response(_list_item(await server.session(forked, request.client)), 201)


async def session_chat(server: ServerContext, request: ApiRequest) -> ApiResponse:
    async def encode_run(run: Run) -> JsonObject:
        usage = response_usage(usage_of(run))
        return {"output": run.text, "usage": usage, **hermes_fields(run)}

    return await answer_turn(server, request, partial(_start_turn, server, request), encode_run)


async def session_chat_stream(server: ServerContext, request: ApiRequest) -> None:
    encoder = partial(RunEncoder, delta="assistant.delta")
    await stream_turn(server, request, partial(_start_turn, server, request), encoder)


async def _start_turn(server: ServerContext, request: ApiRequest, claim: IdempotencyClaim) -> Run:
    server.admission.check()
    body: SessionChatBody = request.body
    session_id = request.path_params["id"]
    await server.session_or_none(session_id, request.client)
    parsed = split_input(input_items(body.input), "input")
    own = await turn_request(
        server, request, parsed, claim, param="input", images=body.images or ()
    )
    turn = replace(own, session_id=session_id, create="if_missing")
    return await start_run(server, turn, claim)


def _list_item(info: SessionInfo) -> JsonObject:
    usage = info.usage
    return {
        "id": info.id,
        "title": info.title,
        "preview": info.preview,
        "source": info.source,
        "model": info.model,
        "provider": info.provider,
        "created_at": info.started_at,
        "updated_at": info.last_at,
        "message_count": info.message_count,
        "tokens": {"input": usage.prompt, "output": usage.output},
        "cost": usage.cost,
        "parent_id": info.parent or None,
        "archived": info.archived,
    }
