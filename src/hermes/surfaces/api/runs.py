"""`/v1/runs`: background turns that clients follow, steer, approve and stop."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.describe import describe
from hermes.core.effects import subject
from hermes.core.errors import UsageError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from hermes.core.messages import ToolResult
from hermes.homes import toolsets
from hermes.surfaces.api.asking import asked, chat_messages, input_items
from hermes.surfaces.api.bodies import AnswerBody, ApprovalBody, RunBody, SteerBody
from hermes.surfaces.api.call import Answer, Call, answer
from hermes.surfaces.api.chat import effort_of, run_headers, start, tier_of
from hermes.surfaces.api.content import images, past
from hermes.surfaces.api.deeds import Begun, Deeds, Done
from hermes.surfaces.api.errand import Errand
from hermes.surfaces.api.follower import Anew, Happened, Mark, Moment, Piece, parse_mark
from hermes.surfaces.api.house import House, check_session_id, leaving
from hermes.surfaces.api.once import Ticket, once
from hermes.surfaces.api.outcomes import failure_of, usage_of
from hermes.surfaces.api.refusals import Refusal
from hermes.surfaces.api.responses import response_usage, stored_spot
from hermes.surfaces.api.run import Run
from hermes.surfaces.api.sse import event, pour
from hermes.surfaces.api.threads import go_on


async def create_run(house: House, call: Call) -> Answer:
    async def work(ticket: Ticket) -> Answer:
        house.desk.admit()
        run = await start(house, await _errand(house, call, ticket), ticket, kept=True)
        told = {"run_id": run.id, "status": run.status, "session_id": run.session_id}
        return answer(told, 202, run_headers(run))

    return await once(house, call, work)


async def _errand(house: House, call: Call, ticket: Ticket) -> Errand:
    body: RunBody = call.body
    said = chat_messages(body.conversation_history or (), "conversation_history")
    wanted = asked([*said, *input_items(body.input)], "input", system=body.instructions or "")
    model, provider = await house.model(body.model, body.provider)
    kept = await images(house.app, wanted.now.urls, "input")
    began = await past(house.app, wanted.before, "input")
    session_id, is_new = await _place(house, call, ticket)
    return Errand(
        session_id=session_id,
        text=wanted.now.text,
        images=kept,
        source=call.client.source,
        extra=wanted.system,
        past=began,
        model=model,
        provider=provider,
        effort=effort_of(body.model_options),
        tier=tier_of(body.model_options.service_tier if body.model_options else None),
        create="always" if is_new else "if_missing",
        attended="approve" in call.client.scopes,
        alone=False,
        again=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
        toolsets=_toolsets(body, is_new=is_new or bool(ticket.run_id)),
    )


def _toolsets(body: RunBody, *, is_new: bool) -> tuple[str, ...]:
    """The chosen toolsets; HttpError for a session that started with others."""
    if body.toolsets is None:
        return ()
    if not is_new:
        words = "An existing session keeps its tools; omit `session_id`."
        raise Refusal(400, "invalid_value", words, param="toolsets")
    try:
        toolsets.check(body.toolsets)
    except UsageError as error:
        raise Refusal(400, "invalid_value", str(error), param="toolsets") from error
    return tuple(body.toolsets)


async def _place(house: House, call: Call, ticket: Ticket) -> tuple[str, bool]:
    body: RunBody = call.body
    if ticket.run_id:
        return ticket.run_id.removeprefix("run_").rpartition("_")[0], False
    if body.session_id and body.previous_response_id:
        words = "Give `session_id` or `previous_response_id`, not both."
        raise Refusal(400, "invalid_value", words, param="previous_response_id")
    if body.previous_response_id:
        spot = await stored_spot(house, call.whose, body.previous_response_id)
        return await go_on(house, spot), False
    if body.session_id:
        await house.session_or_none(body.session_id, call.client)
        return body.session_id, False
    return house.desk.new_session_id(), True


async def show_run(house: House, call: Call) -> Answer:
    run = await _run(house, call)
    told: JsonObject = {
        "object": "hermes.run",
        "run_id": run.id,
        "status": run.status,
        "session_id": run.session_id,
        "model": run.model or house.model_name,
        "created_at": run.created_at,
        "updated_at": run.records[-1].at if run.records else run.created_at,
        "last_event": str(run.last_n),
    }
    if run.is_over:
        failed = failure_of(run)
        told |= {"output": run.text, "usage": response_usage(usage_of(run))}
        told["error"] = failed.error if failed is not None else None
    pending = [each for each in run.asked.values() if isinstance(each, ApprovalAsked)]
    if pending:
        told["pending_approval"] = _approval(pending[0], _asked_at(run, pending[0]))
    return answer(told)


async def run_events(house: House, call: Call) -> None:
    given = call.headers.get("last-event-id") or call.query.get("after") or "0"
    mark = parse_mark(given)
    if mark is None:
        words = "`Last-Event-ID` is not an event id of this run."
        raise Refusal(400, "invalid_value", words, param="Last-Event-ID")
    run = house.desk.revive(await _run(house, call))
    teller = RunTeller(run, mark)
    await pour(house, call, run, teller, leaving=leaving(call, "detach"), after=mark)


async def stop_run(house: House, call: Call) -> Answer:
    run = await _active(house, call)
    await house.desk.stop(run)
    return answer({"run_id": run.id, "status": "stopping"}, 202)


async def approve_run(house: House, call: Call) -> Answer:
    run = await _active(house, call)
    body: ApprovalBody = call.body
    pending = {id: each for id, each in run.asked.items() if isinstance(each, ApprovalAsked)}
    asked_id = body.approval_id or next(iter(pending), "")
    if asked_id not in pending:
        raise Refusal(409, "no_pending_approval", "No approval is pending.")
    if body.decision != "deny" and body.decision not in pending[asked_id].scopes:
        words = f"The decision must be one of {', '.join(pending[asked_id].scopes)} or deny."
        raise Refusal(400, "invalid_value", words, param="decision")
    by = f"api:{call.client.name}"
    await house.desk.answer(run, asked_id, body.decision, by, body.reason or "")
    return answer({"run_id": run.id, "approval_id": asked_id, "decision": body.decision})


async def answer_run(house: House, call: Call) -> Answer:
    """Answer a question of the agent."""
    run = await _active(house, call)
    body: AnswerBody = call.body
    pending = [id for id, each in run.asked.items() if isinstance(each, QuestionAsked)]
    asked_id = body.question_id or next(iter(pending), "")
    if asked_id not in pending:
        raise Refusal(409, "no_pending_question", "No question is pending.")
    await house.desk.answer(run, asked_id, body.text, f"api:{call.client.name}")
    return answer({"run_id": run.id, "question_id": asked_id})


async def steer_run(house: House, call: Call) -> Answer:
    run = await _active(house, call)
    body: SteerBody = call.body
    await house.desk.steer(run, body.text)
    return answer({"run_id": run.id, "status": run.status}, 202)


async def _run(house: House, call: Call) -> Run:
    run = await house.desk.find(call.names["id"])
    check_session_id(run.session_id)
    if not call.client.is_owner:
        try:
            await house.session(run.session_id, call.client)
        except Refusal as error:
            raise Refusal(404, "run_not_found", "There is no such run.") from error
    return run


async def _active(house: House, call: Call) -> Run:
    run = await _run(house, call)
    if run.is_over:
        raise Refusal(409, "run_not_active", f"The run has ended: {run.status}.")
    return run


def _asked_at(run: Run, pending: ApprovalAsked) -> float:
    asked = (each.at for each in reversed(run.records) if each.event == pending)
    return next(asked, run.created_at)


def _approval(pending: ApprovalAsked, at: float) -> JsonObject:
    return {
        "approval_id": pending.id,
        "command": subject(pending.effect),
        "description": pending.reason,
        "choices": [*pending.scopes, "deny"],
        "expires_seconds": pending.expires_seconds,
        "expires_at": at + pending.expires_seconds,
    }


class RunTeller:
    """Encodes a run as events. `names` maps them to the names of the route's protocol."""

    def __init__(
        self, run: Run, after: Mark | None = None, *, delta: str = "message.delta"
    ) -> None:
        self._run = run
        self._delta = delta
        self._deeds = Deeds()
        for record in run.records:
            if after is not None and record.n <= after.n:
                for _ in self._deeds.hear(record.event):
                    pass

    def begin(self) -> bytes:
        return b""

    def tell(self, moment: Moment) -> bytes:
        match moment:
            case Piece(text=text, is_text=True, mark=mark):
                return self._event(self._delta, mark, {"delta": text})
            case Piece(text=text, mark=mark):
                return self._event("reasoning.delta", mark, {"delta": text})
            case Anew(mark=mark):
                return self._event("message.restarted", mark, {})
            case Happened(record=record, mark=mark):
                told = self._happened(record.event, record.at)
                # Only the last event has the id: a reader cut off before it gets all again.
                marks = [None] * (len(told) - 1) + [mark]
                return b"".join(
                    self._event(name, at, {"timestamp": record.at, **facts})
                    for at, (name, facts) in zip(marks, told, strict=False)
                )

    def end(self, run: Run) -> bytes:
        """The end event was sent already, unless the journal has no TurnEnded."""
        if run.ended is not None:
            return b""
        failed = failure_of(run)
        assert failed is not None
        return self._event("run.failed", Mark(n=run.last_n), {"error": failed.error})

    def _event(self, name: str, mark: Mark | None, facts: JsonObject) -> bytes:
        told = encode({"event": name, "run_id": self._run.id, **facts})
        return event(name, told, str(mark) if mark is not None else "")

    def _happened(self, happened: Event, at: float) -> list[tuple[str, JsonObject]]:
        match happened:
            case TurnStarted():
                return [("run.started", {"session_id": self._run.session_id})]
            case ApprovalAsked():
                return [("approval.request", _approval(happened, at))]
            case ApprovalAnswered(id=id, choice=choice, by=by, reason=reason):
                told = {"approval_id": id, "choice": choice, "by": by, "reason": reason}
                return [("approval.responded", told)]
            case QuestionAsked(id=id, question=question, choices=choices):
                facts = {"question_id": id, "question": question, "choices": choices}
                return [("question.asked", facts)]
            case QuestionAnswered(id=id, text=text):
                return [("question.answered", {"question_id": id, "text": text})]
            case TurnEnded():
                return [self._ended()]
            case ToolFinished(result=result):
                done = [_deed(deed) for deed in self._deeds.hear(happened)]
                return [*done, *_plan(result)]
            case _:
                return [_deed(deed) for deed in self._deeds.hear(happened)]

    def _ended(self) -> tuple[str, JsonObject]:
        run = self._run
        usage = response_usage(usage_of(run))
        if run.status == "cancelled":
            return "run.cancelled", {"output": run.text, "usage": usage}
        if (failed := failure_of(run)) is not None:
            return "run.failed", {"error": failed.error, "usage": usage}
        return "run.completed", {"output": run.text, "usage": usage}


def _plan(result: ToolResult) -> list[tuple[str, JsonObject]]:
    """The task list, whenever the agent updates it."""
    plan = result.details.get("todos") if result.name == "todo" and not result.failed else None
    return [] if plan is None else [("plan.updated", {"plan": plan})]


def _deed(deed: Begun | Done) -> tuple[str, JsonObject]:
    facts: JsonObject = {"tool": deed.call.name, "tool_call_id": deed.call.id}
    match deed:
        case Begun():
            return "tool.started", {**facts, "preview": describe(deed.call).detail}
        case Done(result=result, seconds=seconds):
            return "tool.completed", {**facts, "duration": seconds, "error": result.failed}
