"""`/v1/runs`: background turns that clients follow, steer, approve and stop."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.tool_calls import describe_call
from hermes.core.commands import Answer, Steer
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
from hermes.hosting.follower import (
    RecordAdded,
    ReplyRestarted,
    RunEvent,
    StreamPosition,
    TextPiece,
    parse_position,
)
from hermes.hosting.idempotency import IdempotencyClaim
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run, session_of
from hermes.surfaces.api.bodies import (
    AnswerBody,
    ApprovalBody,
    RunBody,
    SteerBody,
    chat_messages,
    history_messages,
    input_items,
    split_input,
    store_images,
)
from hermes.surfaces.api.chat import continue_from, effort_of, run_headers, start_run, tier_of
from hermes.surfaces.api.encoding import (
    CallFinished,
    CallStarted,
    ToolCallTracker,
    run_error,
    sse_event,
    stream_run,
    usage_of,
)
from hermes.surfaces.api.http import HttpError, HttpRequest, HttpResponse, json_response
from hermes.surfaces.api.idempotency_key import run_once
from hermes.surfaces.api.responses import response_usage, stored_point
from hermes.surfaces.api.server_context import ServerContext, check_session_id, on_disconnect


async def create_run(house: ServerContext, call: HttpRequest) -> HttpResponse:
    async def work(ticket: IdempotencyClaim) -> HttpResponse:
        house.admission.check()
        run = await start_run(
            house, await _turn_request(house, call, ticket), ticket, persistent=True
        )
        told = {"run_id": run.id, "status": run.status, "session_id": run.session_id}
        return json_response(told, 202, run_headers(run))

    return await run_once(house, call, work)


async def _turn_request(
    house: ServerContext, call: HttpRequest, ticket: IdempotencyClaim
) -> TurnRequest:
    body: RunBody = call.body
    said = chat_messages(body.conversation_history or (), "conversation_history")
    wanted = split_input([*said, *input_items(body.input)], "input", system=body.instructions or "")
    model, provider = await house.model(body.model, body.provider)
    kept = await store_images(house.app, wanted.now.urls, "input")
    began = await history_messages(house.app, wanted.before, "input")
    session_id, is_new = await _place(house, call, ticket)
    return TurnRequest(
        session_id=session_id,
        text=wanted.now.text,
        images=kept,
        source=call.client.source,
        instructions=wanted.system,
        history=began,
        model=model,
        provider=provider,
        effort=effort_of(body.model_options),
        tier=tier_of(body.model_options.service_tier if body.model_options else None),
        create="always" if is_new else "if_missing",
        attended="approve" in call.client.scopes,
        exclusive=False,
        is_retry=bool(ticket.run_id),
        confined=not call.client.is_owner,
        person=call.person,
        principal=call.client.name,
        toolsets=_toolsets(body, is_new=is_new or bool(ticket.run_id)),
    )


def _toolsets(body: RunBody, *, is_new: bool) -> tuple[str, ...]:
    """The chosen toolsets; HttpError for a session that started with others."""
    if body.toolsets is None:
        return ()
    if not is_new:
        words = "An existing session keeps its tools; omit `session_id`."
        raise HttpError(400, "invalid_value", words, param="toolsets")
    try:
        toolsets.check(body.toolsets)
    except UsageError as error:
        raise HttpError(400, "invalid_value", str(error), param="toolsets") from error
    return tuple(body.toolsets)


async def _place(
    house: ServerContext, call: HttpRequest, ticket: IdempotencyClaim
) -> tuple[str, bool]:
    body: RunBody = call.body
    if ticket.run_id:
        return session_of(ticket.run_id), False
    if body.session_id and body.previous_response_id:
        words = "Give `session_id` or `previous_response_id`, not both."
        raise HttpError(400, "invalid_value", words, param="previous_response_id")
    if body.previous_response_id:
        spot = await stored_point(house, call.owner_key, body.previous_response_id)
        return await continue_from(house, spot), False
    if body.session_id:
        await house.session_or_none(body.session_id, call.client)
        return body.session_id, False
    return house.runner.new_session_id(), True


async def show_run(house: ServerContext, call: HttpRequest) -> HttpResponse:
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
        failed = run_error(run)
        told |= {"output": run.text, "usage": response_usage(usage_of(run))}
        told["error"] = failed.error if failed is not None else None
    pending = [each for each in run.pending.values() if isinstance(each, ApprovalAsked)]
    if pending:
        told["pending_approval"] = _approval(pending[0], _asked_at(run, pending[0]))
    return json_response(told)


async def run_events(house: ServerContext, call: HttpRequest) -> None:
    given = call.headers.get("last-event-id") or call.query.get("after") or "0"
    mark = parse_position(given)
    if mark is None:
        words = "`Last-Event-ID` is not an event id of this run."
        raise HttpError(400, "invalid_value", words, param="Last-Event-ID")
    run = house.runner.resume(await _run(house, call))
    teller = RunEncoder(run, mark)
    await stream_run(house, call, run, teller, leaving=on_disconnect(call, "detach"), after=mark)


async def stop_run(house: ServerContext, call: HttpRequest) -> HttpResponse:
    run = await _active(house, call)
    await house.runner.stop(run)
    return json_response({"run_id": run.id, "status": "stopping"}, 202)


async def approve_run(house: ServerContext, call: HttpRequest) -> HttpResponse:
    run = await _active(house, call)
    body: ApprovalBody = call.body
    pending = {id: each for id, each in run.pending.items() if isinstance(each, ApprovalAsked)}
    asked_id = body.approval_id or next(iter(pending), "")
    if asked_id not in pending:
        raise HttpError(409, "no_pending_approval", "No approval is pending.")
    if body.decision != "deny" and body.decision not in pending[asked_id].scopes:
        words = f"The decision must be one of {', '.join(pending[asked_id].scopes)} or deny."
        raise HttpError(400, "invalid_value", words, param="decision")
    by = f"api:{call.client.name}"
    answer = Answer(id=asked_id, text=body.decision, by=by, reason=body.reason or "")
    await house.runner.send(run, answer)
    return json_response({"run_id": run.id, "approval_id": asked_id, "decision": body.decision})


async def answer_run(house: ServerContext, call: HttpRequest) -> HttpResponse:
    """Answer a question of the agent."""
    run = await _active(house, call)
    body: AnswerBody = call.body
    pending = [id for id, each in run.pending.items() if isinstance(each, QuestionAsked)]
    asked_id = body.question_id or next(iter(pending), "")
    if asked_id not in pending:
        raise HttpError(409, "no_pending_question", "No question is pending.")
    answer = Answer(id=asked_id, text=body.text, by=f"api:{call.client.name}")
    await house.runner.send(run, answer)
    return json_response({"run_id": run.id, "question_id": asked_id})


async def steer_run(house: ServerContext, call: HttpRequest) -> HttpResponse:
    run = await _active(house, call)
    body: SteerBody = call.body
    await house.runner.send(run, Steer(text=body.text))
    return json_response({"run_id": run.id, "status": run.status}, 202)


async def _run(house: ServerContext, call: HttpRequest) -> Run:
    run = await house.runner.find(call.path_params["id"])
    check_session_id(run.session_id)
    if not call.client.is_owner:
        try:
            await house.session(run.session_id, call.client)
        except HttpError as error:
            raise HttpError(404, "run_not_found", "There is no such run.") from error
    return run


async def _active(house: ServerContext, call: HttpRequest) -> Run:
    run = await _run(house, call)
    if run.is_over:
        raise HttpError(409, "run_not_active", f"The run has ended: {run.status}.")
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


class RunEncoder:
    """Encodes a run as events. `names` maps them to the names of the route's protocol."""

    def __init__(
        self, run: Run, after: StreamPosition | None = None, *, delta: str = "message.delta"
    ) -> None:
        self._run = run
        self._delta = delta
        self._deeds = ToolCallTracker()
        for record in run.records:
            if after is not None and record.n <= after.n:
                for _ in self._deeds.apply(record.event):
                    pass

    def begin(self) -> bytes:
        return b""

    def encode(self, moment: RunEvent) -> bytes:
        match moment:
            case TextPiece(text=text, is_text=True, mark=mark):
                return self._event(self._delta, mark, {"delta": text})
            case TextPiece(text=text, mark=mark):
                return self._event("reasoning.delta", mark, {"delta": text})
            case ReplyRestarted(mark=mark):
                return self._event("message.restarted", mark, {})
            case RecordAdded(record=record, mark=mark):
                told = self._record_events(record.event, record.at)
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
        failed = run_error(run)
        assert failed is not None
        return self._event("run.failed", StreamPosition(n=run.last_n), {"error": failed.error})

    def _event(self, name: str, mark: StreamPosition | None, facts: JsonObject) -> bytes:
        told = encode({"event": name, "run_id": self._run.id, **facts})
        return sse_event(name, told, str(mark) if mark is not None else "")

    def _record_events(self, happened: Event, at: float) -> list[tuple[str, JsonObject]]:
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
                return [self._end_event()]
            case ToolFinished(result=result):
                done = [_tool_event(deed) for deed in self._deeds.apply(happened)]
                return [*done, *_plan(result)]
            case _:
                return [_tool_event(deed) for deed in self._deeds.apply(happened)]

    def _end_event(self) -> tuple[str, JsonObject]:
        run = self._run
        usage = response_usage(usage_of(run))
        if run.status == "cancelled":
            return "run.cancelled", {"output": run.text, "usage": usage}
        if (failed := run_error(run)) is not None:
            return "run.failed", {"error": failed.error, "usage": usage}
        return "run.completed", {"output": run.text, "usage": usage}


def _plan(result: ToolResult) -> list[tuple[str, JsonObject]]:
    """The task list, whenever the agent updates it."""
    plan = result.details.get("todos") if result.name == "todo" and not result.failed else None
    return [] if plan is None else [("plan.updated", {"plan": plan})]


def _tool_event(deed: CallStarted | CallFinished) -> tuple[str, JsonObject]:
    facts: JsonObject = {"tool": deed.call.name, "tool_call_id": deed.call.id}
    match deed:
        case CallStarted():
            return "tool.started", {**facts, "preview": describe_call(deed.call).detail}
        case CallFinished(result=result, seconds=seconds):
            return "tool.completed", {**facts, "duration": seconds, "error": result.failed}
