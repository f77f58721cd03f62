"""`/v1/responses`: runs turns as OpenAI responses that are stored and can be continued."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hermes.codec.json import decode
from hermes.codec.values import JsonObject
from hermes.core.errors import NotFound
from hermes.core.messages import Usage
from hermes.surfaces.api.asking import Asked, asked, chat_messages, input_items
from hermes.surfaces.api.bodies import ConversationName, ResponseBody
from hermes.surfaces.api.call import JSON, Answer, Call, answer
from hermes.surfaces.api.chat import check_tools, run_headers, start, tier_of
from hermes.surfaces.api.content import images, past
from hermes.surfaces.api.errand import Errand
from hermes.surfaces.api.follower import Moment
from hermes.surfaces.api.house import House, leaving
from hermes.surfaces.api.items import PLACE, ItemTeller, output_items, with_picture
from hermes.surfaces.api.once import Ticket, once, take_ticket
from hermes.surfaces.api.outcomes import extra_facts, failure_of, finish_reason, usage_of
from hermes.surfaces.api.refusals import Refusal
from hermes.surfaces.api.run import Run
from hermes.surfaces.api.sse import pour, whole
from hermes.surfaces.api.stored import (
    latest_response,
    load_response,
    remove_response,
    response_not_found,
    response_point,
    store_response,
)
from hermes.surfaces.api.threads import Spot, go_on, spot_of


async def create_response(house: House, call: Call) -> Answer | None:
    body: ResponseBody = call.body
    _check(house, body)
    history = chat_messages(body.conversation_history or (), "conversation_history")
    said = [*history, *input_items(body.input)]
    wanted = asked(said, "input", system=body.instructions or "")
    on_leave = leaving(call, "interrupt")
    if body.stream:
        run = await _begin(house, call, wanted, await take_ticket(house, call))
        teller = ResponseTeller(house, call, run)
        await pour(house, call, run, teller, leaving=on_leave, headers=run_headers(run))
        return None

    async def work(ticket: Ticket) -> Answer:
        run = await _begin(house, call, wanted, ticket)
        await whole(house, call, run, leaving=on_leave)
        if (failed := failure_of(run)) is not None:
            raise failed
        told = await illustrated(response_of(house, call.body, run))
        return answer(told, headers=run_headers(run))

    return await once(house, call, work)


async def show_response(house: House, call: Call) -> Answer:
    data = await load_response(house, call.whose, call.names["id"])
    if PLACE.encode() in data:
        return answer(await illustrated(decode(dict, data)))
    return Answer(status=200, body=data, headers=JSON)


async def delete_response(house: House, call: Call) -> Answer:
    await remove_response(house, call.whose, call.names["id"])
    return answer({"id": call.names["id"], "object": "response", "deleted": True})


async def stored_spot(house: House, whose: str, response_id: str) -> Spot:
    return await response_point(house, whose, response_id)


def _check(house: House, body: ResponseBody) -> None:
    check_tools(house, body.tools)
    if body.background:
        words = "Use `/v1/runs` for background turns."
        raise Refusal(400, "unsupported_parameter", words, param="background")
    if body.previous_response_id and body.conversation:
        words = "Give `previous_response_id` or `conversation`, not both."
        raise Refusal(400, "invalid_value", words, param="previous_response_id")


def _conversation(body: ResponseBody) -> str:
    named = body.conversation
    return named.id if isinstance(named, ConversationName) else named or ""


async def _begin(house: House, call: Call, wanted: Asked, ticket: Ticket) -> Run:
    house.desk.admit()
    body: ResponseBody = call.body
    model, provider = await house.model(body.model, body.provider)
    kept = await images(house.app, wanted.now.urls, "input")
    began = await past(house.app, wanted.before, "input")
    session_id = await _place(house, call, ticket)
    errand = Errand(
        session_id=session_id or house.desk.new_session_id(),
        text=wanted.now.text,
        images=kept,
        source=call.client.source,
        extra=wanted.system,
        past=began,
        model=model,
        provider=provider,
        effort=(body.reasoning.effort if body.reasoning else None) or "",
        tier=tier_of(body.service_tier),
        create="if_missing" if session_id else "always",
        again=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
    )
    return await start(house, errand, ticket, on_end=_keep(house, call))


async def _place(house: House, call: Call, ticket: Ticket) -> str:
    """The session to continue, "" for a new one."""
    body: ResponseBody = call.body
    if ticket.run_id:
        return ticket.run_id.removeprefix("run_").rpartition("_")[0]
    previous = body.previous_response_id or ""
    if name := _conversation(body):
        previous = await latest_response(house, call.whose, name)
    if previous:
        spot = await response_point(house, call.whose, previous)
        try:
            return await go_on(house, spot)
        except NotFound as error:
            raise response_not_found("previous_response_id") from error
    named = call.headers.get("x-hermes-session-id")
    if named is not None:
        await house.session_or_none(named, call.client)
    return named or ""


def _keep(house: House, call: Call) -> Callable[[Run], Awaitable[None]]:
    async def on_end(run: Run) -> None:
        """Store the response even if the client disconnected, so that it can be continued."""
        body: ResponseBody = call.body
        if body.store is False or failure_of(run) is not None:
            return
        spot = await spot_of(house, run.session_id, run.last_n)
        response = response_of(house, body, run)
        await store_response(house, call.whose, response, spot, _conversation(body))

    return on_end


async def illustrated(response: JsonObject) -> JsonObject:
    """The response with image data; the stored form holds only paths."""
    return await asyncio.to_thread(_illustrated, response)


def _illustrated(response: JsonObject) -> JsonObject:
    return {**response, "output": [with_picture(item) for item in response["output"]]}


def response_id(run: Run) -> str:
    return f"resp_{run.id.removeprefix('run_')}"


def response_of(house: House, body: ResponseBody, run: Run) -> JsonObject:
    status, why = _status(run)
    failed = failure_of(run) if run.is_over else None
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
        "hermes": extra_facts(run),
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
    if failure_of(run) is not None:
        return "failed", ""
    if run.status == "cancelled":
        return "incomplete", "interrupted"
    if finish_reason(run) == "length":
        return "incomplete", "max_output_tokens"
    return "completed", ""


class ResponseTeller:
    def __init__(self, house: House, call: Call, run: Run) -> None:
        self._house = house
        self._body: ResponseBody = call.body
        self._run = run
        self._items = ItemTeller(run, reasoning=house.settings.show_reasoning)

    def begin(self) -> bytes:
        begun = response_of(self._house, self._body, self._run)
        begun |= {"status": "in_progress", "output": [], "output_text": "", "usage": None}
        facts = {"response": begun}
        return self._items.event("response.created", facts) + self._items.event(
            "response.in_progress", facts
        )

    def tell(self, moment: Moment) -> bytes:
        return self._items.tell(moment)

    def end(self, run: Run) -> bytes:
        whole_response = _illustrated(response_of(self._house, self._body, run))
        told = self._items.close()
        kind = f"response.{whole_response['status']}"
        return told + self._items.event(kind, {"response": whole_response})
