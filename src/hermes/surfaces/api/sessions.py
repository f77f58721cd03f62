"""`/api/sessions`: lists, reads, renames, forks, continues and deletes sessions."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.journal.archive import SessionFilter, SessionInfo
from hermes.surfaces.api.asking import asked, input_items
from hermes.surfaces.api.bodies import ForkBody, SessionBody, SessionChatBody, SessionPatch
from hermes.surfaces.api.call import Answer, Call, answer
from hermes.surfaces.api.chat import run_headers, start
from hermes.surfaces.api.content import images
from hermes.surfaces.api.errand import Errand
from hermes.surfaces.api.house import House, leaving
from hermes.surfaces.api.listed import Listed
from hermes.surfaces.api.once import Ticket, once, take_ticket
from hermes.surfaces.api.outcomes import extra_facts, failure_of, usage_of
from hermes.surfaces.api.refusals import Refusal
from hermes.surfaces.api.responses import response_usage
from hermes.surfaces.api.run import Run
from hermes.surfaces.api.runs import RunTeller
from hermes.surfaces.api.sse import pour, whole

MOST_LISTED = 500
SHORTENED = 4_096
# Sessions that belong to another session.
CHILD = "subagent"


async def list_sessions(house: House, call: Call) -> Answer:
    limit = call.number("limit", 50, least=1, most=MOST_LISTED)
    offset = call.number("offset", 0, most=100_000)
    source = call.query.get("source")
    if not call.client.is_owner:
        source = call.client.source
    children = call.flag("include_children")
    wanted = SessionFilter(source=source, exclude_sources=() if children else (CHILD,))
    query = (call.query.get("q") or "").strip()
    archived = call.flag("archived") if "archived" in call.query else None
    listed = Listed(house, wanted, archived=archived)
    rows = await (listed.found(query) if query else listed.recent(offset + limit + 1))
    page = rows[offset : offset + limit]
    return answer(
        {
            "sessions": [_listed(info) for info in page],
            "limit": limit,
            "offset": offset,
            "has_more": len(rows) > offset + limit,
        }
    )


async def create_session(house: House, call: Call) -> Answer:
    """Reserve an id. A session is stored from its first message on."""
    body: SessionBody = call.body
    session_id = body.id or house.desk.new_session_id()
    if await house.session_or_none(session_id, call.client) is not None:
        raise Refusal(409, "session_exists", "A session with this id exists.", param="id")
    return answer({"id": session_id, "source": call.client.source}, 201)


async def show_session(house: House, call: Call) -> Answer:
    info = await house.session(call.names["id"], call.client)
    return answer(_listed(info))


async def change_session(house: House, call: Call) -> Answer:
    body: SessionPatch = call.body
    info = await house.session(call.names["id"], call.client)
    async with house.desk.steady(info.id):
        if body.title is not None:
            await house.app.library.rename(info.id, body.title)
        if body.archived is not None:
            await house.app.library.put_away(info.id, away=body.archived)
    return await show_session(house, call)


async def delete_session(house: House, call: Call) -> Answer:
    info = await house.session(call.names["id"], call.client)
    async with house.desk.quiet(info.id):
        await house.app.library.delete(info.id)
    return answer({"id": info.id, "deleted": True})


async def session_messages(house: House, call: Call) -> Answer:
    info = await house.session(call.names["id"], call.client)
    limit = call.number("limit", 100, least=1, most=1_000)
    after = call.number("after", 0, most=999_999_999)
    full = call.query.get("full") == "1"
    said = [each for each in await house.app.library.conversation(info.id) if each.n > after]
    told: list[JsonObject] = []
    for each in said[:limit]:
        text, cut = each.text, False
        if each.role == "tool" and len(text) > SHORTENED and not full:
            text, cut = text[:SHORTENED], True
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
    return answer({"messages": told, "has_more": len(said) > limit})


async def fork_session(house: House, call: Call) -> Answer:
    body: ForkBody = call.body
    info = await house.session(call.names["id"], call.client)
    forked = await house.app.library.fork(info.id, at=body.at_message, title=body.title or "")
    return answer(_listed(await house.session(forked, call.client)), 201)


async def session_chat(house: House, call: Call) -> Answer:
    async def work(ticket: Ticket) -> Answer:
        run = await _begin(house, call, ticket)
        await whole(house, call, run, leaving=leaving(call, "interrupt"))
        if (failed := failure_of(run)) is not None:
            raise failed
        told = {"output": run.text, "usage": response_usage(usage_of(run)), **extra_facts(run)}
        return answer(told, headers=run_headers(run))

    return await once(house, call, work)


async def session_chat_stream(house: House, call: Call) -> None:
    on_leave = leaving(call, "interrupt")
    run = await _begin(house, call, await take_ticket(house, call))
    teller = RunTeller(run, delta="assistant.delta")
    await pour(house, call, run, teller, leaving=on_leave, headers=run_headers(run))


async def _begin(house: House, call: Call, ticket: Ticket) -> Run:
    house.desk.admit()
    body: SessionChatBody = call.body
    session_id = call.names["id"]
    await house.session_or_none(session_id, call.client)
    wanted = asked(input_items(body.input), "input")
    model, provider = await house.model(body.model, body.provider)
    errand = Errand(
        session_id=session_id,
        text=wanted.now.text,
        images=await images(house.app, (*wanted.now.urls, *(body.images or ())), "input"),
        source=call.client.source,
        extra=wanted.system,
        model=model,
        provider=provider,
        create="if_missing",
        again=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
    )
    return await start(house, errand, ticket)


def _listed(info: SessionInfo) -> JsonObject:
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
