"""`/api/sessions`: lists, reads, renames, forks, continues and deletes sessions."""

from __future__ import annotations

from hermes.codec.values import JsonObject, replace
from hermes.core.errors import NotFound
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run
from hermes.journal.archive import SessionFilter, SessionInfo
from hermes.surfaces.api.bodies import (
    ForkBody,
    SessionBody,
    SessionChatBody,
    SessionPatch,
    input_items,
    split_input,
    store_images,
)
from hermes.surfaces.api.chat import run_headers, start_run
from hermes.surfaces.api.encoding import (
    hermes_fields,
    run_error,
    stream_run,
    usage_of,
    wait_for_run,
)
from hermes.surfaces.api.http import HttpError, HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.idempotency_key import claim_key, run_once
from hermes.surfaces.api.responses import response_usage
from hermes.surfaces.api.runs import RunEncoder
from hermes.surfaces.api.server_context import ServerContext, on_disconnect

# Search hits that are grouped into sessions.
MOST_HITS = 200


class SessionListing:
    """Sessions, last used first. `archived` selects only archived sessions or only others; by
    default a list omits archived sessions and a search includes them."""

    def __init__(
        self, house: ServerContext, wanted: SessionFilter, *, archived: bool | None
    ) -> None:
        self._library = house.app.archive
        self._wanted = wanted
        self._archived = archived

    async def recent(self, most: int) -> list[SessionInfo]:
        wanted = replace(self._wanted, archived=bool(self._archived))
        return list(await self._library.recent(wanted, limit=most))

    async def search(self, query: str) -> list[SessionInfo]:
        """Match the title or the messages."""
        wanted = replace(self._wanted, title=query, archived=self._archived)
        by_id = {info.id: info for info in await self._library.recent(wanted, limit=None)}
        for hit in await self._library.search(query, limit=MOST_HITS):
            if hit.session_id not in by_id and (info := await self._one(hit.session_id)):
                by_id[info.id] = info
        return sorted(by_id.values(), key=lambda info: info.last_at, reverse=True)

    async def _one(self, session_id: str) -> SessionInfo | None:
        try:
            info = await self._library.info(session_id)
        except NotFound:
            return None
        return info if self._is_wanted(info) else None

    def _is_wanted(self, info: SessionInfo) -> bool:
        wanted = self._wanted
        return (
            self._archived in (None, info.archived)
            and wanted.source in (None, info.source)
            and info.source not in wanted.exclude_sources
        )


MAX_LISTED = 500
PREVIEW_CHARS = 4_096
# Sessions that belong to another session.
CHILD = "subagent"


async def list_sessions(house: ServerContext, call: HttpRequest) -> HttpResponse:
    limit = call.number("limit", 50, least=1, most=MAX_LISTED)
    offset = call.number("offset", 0, most=100_000)
    source = call.query.get("source")
    if not call.client.is_owner:
        source = call.client.source
    children = call.flag("include_children")
    wanted = SessionFilter(source=source, exclude_sources=() if children else (CHILD,))
    query = (call.query.get("q") or "").strip()
    archived = call.flag("archived") if "archived" in call.query else None
    listed = SessionListing(house, wanted, archived=archived)
    rows = await (listed.search(query) if query else listed.recent(offset + limit + 1))
    page = rows[offset : offset + limit]
    return json_response(
        {
            "sessions": [_list_item(info) for info in page],
            "limit": limit,
            "offset": offset,
            "has_more": len(rows) > offset + limit,
        }
    )


async def create_session(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """Reserve an id. A session is stored from its first message on."""
    body: SessionBody = call.body
    session_id = body.id or house.runner.new_session_id()
    if await house.session_or_none(session_id, call.client) is not None:
        raise HttpError(409, "session_exists", "A session with this id exists.", param="id")
    return json_response({"id": session_id, "source": call.client.source}, 201)


async def show_session(house: ServerContext, call: HttpRequest) -> HttpResponse:
    info = await house.session(call.path_params["id"], call.client)
    return json_response(_list_item(info))


async def change_session(house: ServerContext, call: HttpRequest) -> HttpResponse:
    body: SessionPatch = call.body
    info = await house.session(call.path_params["id"], call.client)
    async with house.pool.pinned(info.id):
        if body.title is not None:
            await house.app.archive.rename(info.id, body.title)
        if body.archived is not None:
            await house.app.archive.set_archived(info.id, away=body.archived)
    return await show_session(house, call)


async def delete_session(house: ServerContext, call: HttpRequest) -> HttpResponse:
    info = await house.session(call.path_params["id"], call.client)
    async with house.pool.exclusive(info.id):
        await house.app.archive.delete(info.id)
    return json_response({"id": info.id, "deleted": True})


async def session_messages(house: ServerContext, call: HttpRequest) -> HttpResponse:
    info = await house.session(call.path_params["id"], call.client)
    limit = call.number("limit", 100, least=1, most=1_000)
    after = call.number("after", 0, most=999_999_999)
    full = call.query.get("full") == "1"
    said = [each for each in await house.app.archive.conversation(info.id) if each.n > after]
    told: list[JsonObject] = []
    for each in said[:limit]:
        text, cut = each.text, False
        if each.role == "tool" and len(text) > PREVIEW_CHARS and not full:
            text, cut = text[:PREVIEW_CHARS], True
        told.append(
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
    return json_response({"messages": told, "has_more": len(said) > limit})


async def fork_session(house: ServerContext, call: HttpRequest) -> HttpResponse:
    body: ForkBody = call.body
    info = await house.session(call.path_params["id"], call.client)
    forked = await house.app.archive.fork(info.id, at=body.at_message, title=body.title or "")
    return json_response(_list_item(await house.session(forked, call.client)), 201)


async def session_chat(house: ServerContext, call: HttpRequest) -> HttpResponse:
    async def work(ticket: IdempotencyClaim) -> HttpResponse:
        run = await _start_turn(house, call, ticket)
        await wait_for_run(house, call, run, leaving=on_disconnect(call, "interrupt"))
        if (failed := run_error(run)) is not None:
            raise failed
        told = {"output": run.text, "usage": response_usage(usage_of(run)), **hermes_fields(run)}
        return json_response(told, headers=run_headers(run))

    return await run_once(house, call, work)


async def session_chat_stream(house: ServerContext, call: HttpRequest) -> None:
    on_leave = on_disconnect(call, "interrupt")
    run = await _start_turn(house, call, await claim_key(house, call))
    teller = RunEncoder(run, delta="assistant.delta")
    await stream_run(house, call, run, teller, leaving=on_leave, headers=run_headers(run))


async def _start_turn(house: ServerContext, call: HttpRequest, ticket: IdempotencyClaim) -> Run:
    house.admission.check()
    body: SessionChatBody = call.body
    session_id = call.path_params["id"]
    await house.session_or_none(session_id, call.client)
    wanted = split_input(input_items(body.input), "input")
    model, provider = await house.model(body.model, body.provider)
    request = TurnRequest(
        session_id=session_id,
        text=wanted.now.text,
        images=await store_images(house.app, (*wanted.now.urls, *(body.images or ())), "input"),
        source=call.client.source,
        instructions=wanted.system,
        model=model,
        provider=provider,
        create="if_missing",
        is_retry=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
        principal=call.client.name,
    )
    return await start_run(house, request, ticket)


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
