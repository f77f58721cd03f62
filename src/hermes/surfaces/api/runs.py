"""`/v1/runs`: background turns that clients follow, steer, approve and stop."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, replace
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
from hermes.hosting.run import Run
from hermes.surfaces.api.bodies import (
    AnswerBody,
    ApprovalBody,
    RunBody,
    SteerBody,
    chat_messages,
    history_messages,
    input_items,
    split_input,
)
from hermes.surfaces.api.encoding import (
    CallFinished,
    CallStarted,
    ToolCallTracker,
    run_error,
    sse_event,
    stream_run,
    usage_of,
)
from hermes.surfaces.api.http import (
    ApiRequest,
    ApiResponse,
    HttpError,
    invalid_value,
    json_response,
)
from hermes.surfaces.api.responses import continued_session, response_usage
from hermes.surfaces.api.server_context import (
    ServerContext,
    check_session_id,
    on_disconnect,
    run_once,
)
from hermes.surfaces.api.turns import (
    effort_of,
    run_headers,
    start_run,
    tier_of,
    turn_request,
)
from hermes.tools.toolbox import resolve_toolsets


async def create_run(server: ServerContext, request: ApiRequest) -> ApiResponse:
    async def work(claim: IdempotencyClaim) -> ApiResponse:
        server.admission.check()
        run = await start_run(
            server, await _turn_request(server, request, claim), claim, persistent=True
        )
        accepted = {"run_id": run.id, "status": run.status, "session_id": run.session_id}
        return json_response(accepted, 202, run_headers(run))

    return await run_once(server, request, work)


async def _turn_request(
    server: ServerContext, request: ApiRequest, claim: IdempotencyClaim
) -> TurnRequest:
    body: RunBody = request.body
    if body.session_id and body.previous_response_id:
        message = "Give `session_id` or `previous_response_id`, not both."
        raise HttpError(400, "invalid_value", message, param="previous_response_id")
    messages = chat_messages(body.conversation_history or (), "conversation_history")
    parsed = split_input(
        [*messages, *input_items(body.input)], "input", system=body.instructions or ""
    )
    own = await turn_request(
        server,
        request,
        parsed,
        claim,
        param="input",
        effort=effort_of(body.model_options),
        tier=tier_of(body.model_options.service_tier if body.model_options else None),
        attended="approve" in request.client.scopes,
        exclusive=False,
    )
    history = await history_messages(server.app.context, parsed.before, "input")
    previous, named = body.previous_response_id or "", body.session_id
    session_id = await continued_session(server, request, claim, previous=previous, named=named)
    if body.toolsets is not None:
        if session_id and not claim.run_id:
            message = "An existing session keeps its tools; omit `session_id`."
            raise invalid_value(message, "toolsets")
        try:
            resolve_toolsets(body.toolsets)
        except UsageError as error:
            raise invalid_value(str(error), "toolsets") from error
    return replace(
        own,
        session_id=session_id or server.run_executor.new_session_id(),
        history=history,
        create="if_missing" if session_id else "always",
        toolsets=tuple(body.toolsets or ()),
    )


async def show_run(server: ServerContext, request: ApiRequest) -> ApiResponse:
    run = await _run(server, request)
    state: JsonObject = {
        "object": "hermes.run",
        "run_id": run.id,
        "status": run.status,
        "session_id": run.session_id,
        "model": run.model or server.model_name,
        "created_at": run.created_at,
        "updated_at": run.records[-1].at if run.records else run.created_at,
        "last_event": str(run.last_n),
    }
    if run.is_over:
        failed = run_error(run)
        state |= {"output": run.text, "usage": response_usage(usage_of(run))}
        state["error"] = failed.error if failed is not None else None
    if run.delay and not run.is_over:
        state["delay"] = run.delay
    pending = [each for each in run.pending.values() if isinstance(each, ApprovalAsked)]
    if pending:
        asked = (each.at for each in reversed(run.records) if each.event == pending[0])
        state["pending_approval"] = _approval(pending[0], next(asked, run.created_at))
    return json_response(state)


async def run_events(server: ServerContext, request: ApiRequest) -> None:
    position = request.headers.get("last-event-id") or request.query.get("after") or "0"
    mark = parse_position(position)
    if mark is None:
        raise invalid_value("`Last-Event-ID` is not an event id of this run.", "Last-Event-ID")
    run = server.run_executor.continue_run(await _run(server, request))
    encoder = RunEncoder(run, mark)
    await stream_run(
        server, request, run, encoder, on_leave=on_disconnect(request, "detach"), after=mark
    )


async def stop_run(server: ServerContext, request: ApiRequest) -> ApiResponse:
    run = await _active(server, request)
    await server.run_executor.stop(run)
    return json_response({"run_id": run.id, "status": "stopping"}, 202)


async def approve_run(server: ServerContext, request: ApiRequest) -> ApiResponse:
    run = await _active(server, request)
    body: ApprovalBody = request.body
    pending = {id: each for id, each in run.pending.items() if isinstance(each, ApprovalAsked)}
    asked_id = body.approval_id or next(iter(pending), "")
    if asked_id not in pending:
        raise HttpError(409, "no_pending_approval", "No approval is pending.")
    if body.decision != "deny" and body.decision not in pending[asked_id].scopes:
        message = f"The decision must be one of {', '.join(pending[asked_id].scopes)} or deny."
        raise HttpError(400, "invalid_value", message, param="decision")
    by = f"api:{request.client.name}"
    answer = Answer(id=asked_id, text=body.decision, by=by, reason=body.reason or "")
    await server.run_executor.send(run, answer)
    return json_response({"run_id": run.id, "approval_id": asked_id, "decision": body.decision})


async def answer_run(server: ServerContext, request: ApiRequest) -> ApiResponse:
    """Answer a question of the agent."""
    run = await _active(server, request)
    body: AnswerBody = request.body
    pending = [id for id, each in run.pending.items() if isinstance(each, QuestionAsked)]
    asked_id = body.question_id or next(iter(pending), "")
    if asked_id not in pending:
        raise HttpError(409, "no_pending_question", "No question is pending.")
    answer = Answer(id=asked_id, text=body.text, by=f"api:{request.client.name}")
    await server.run_executor.send(run, answer)
    return json_response({"run_id": run.id, "question_id": asked_id})


async def steer_run(server: ServerContext, request: ApiRequest) -> ApiResponse:
    run = await _active(server, request)
    body: SteerBody = request.body
    await server.run_executor.send(run, Steer(text=body.text))
    return json_response({"run_id": run.id, "status": run.status}, 202)


async def _run(server: ServerContext, request: ApiRequest) -> Run:
    run = await server.run_executor.find(request.path_params["id"])
    check_session_id(run.session_id)
    if not request.client.is_owner:
        try:
            await server.session(run.session_id, request.client)
        except HttpError as error:
            raise HttpError(404, "run_not_found", "There is no such run.") from error
    return run


async def _active(server: ServerContext, request: ApiRequest) -> Run:
    run = await _run(server, request)
    if run.is_over:
        raise HttpError(409, "run_not_active", f"The run has ended: {run.status}.")
    return run


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
    """Encodes a run as events. `delta` is the name of the events with text."""

    def __init__(
        self, run: Run, after: StreamPosition | None = None, *, delta: str = "message.delta"
    ) -> None:
        self._run = run
        self._delta = delta
        self._after = after.n if after is not None else 0
        self._tracker: ToolCallTracker | None = None

    @property
    def _calls(self) -> ToolCallTracker:
        """Created with the first record to encode: a run that is being resumed has its past by
        then."""
        if self._tracker is None:
            self._tracker = ToolCallTracker()
            for record in self._run.records:
                if record.n <= self._after:
                    for _ in self._tracker.apply(record.event):
                        pass
        return self._tracker

    def begin(self) -> bytes:
        return b""

    def encode(self, event: RunEvent) -> bytes:
        match event:
            case TextPiece(text=text, is_text=True, mark=mark):
                return self._event(self._delta, mark, {"delta": text})
            case TextPiece(text=text, mark=mark):
                return self._event("reasoning.delta", mark, {"delta": text})
            case ReplyRestarted(mark=mark):
                return self._event("message.restarted", mark, {})
            case RecordAdded(record=record, mark=mark):
                events = self._record_events(record.event, record.at)
                # Only the last event has the id: a reader cut off before it gets all again.
                marks = [None] * (len(events) - 1) + [mark]
                return b"".join(
                    self._event(name, at, {"timestamp": record.at, **facts})
                    for at, (name, facts) in zip(marks, events, strict=False)
                )

    def end(self, run: Run) -> bytes:
        """Return the end event, or b"" if it was sent already with the TurnEnded."""
        if run.records and isinstance(run.records[-1].event, TurnEnded):
            return b""
        position = StreamPosition(n=run.last_n)
        if (failed := run_error(run)) is not None:
            return self._event("run.failed", position, {"error": failed.error})
        name, facts = self._end_event()
        return self._event(name, position, facts)

    def _event(self, name: str, mark: StreamPosition | None, facts: JsonObject) -> bytes:
        data = encode({"event": name, "run_id": self._run.id, **facts})
        return sse_event(name, data, str(mark) if mark is not None else "")

    def _record_events(self, event: Event, at: float) -> list[tuple[str, JsonObject]]:
        match event:
            case TurnStarted():
                return [("run.started", {"session_id": self._run.session_id})]
            case ApprovalAsked():
                return [("approval.request", _approval(event, at))]
            case ApprovalAnswered(id=id, choice=choice, by=by, reason=reason):
                answer = {"approval_id": id, "choice": choice, "by": by, "reason": reason}
                return [("approval.responded", answer)]
            case QuestionAsked(id=id, question=question, choices=choices):
                facts = {"question_id": id, "question": question, "choices": choices}
                return [("question.asked", facts)]
            case QuestionAnswered(id=id, text=text):
                return [("question.answered", {"question_id": id, "text": text})]
            case TurnEnded():
                return [self._end_event()]
            case ToolFinished(result=result):
                done = [_tool_event(change) for change in self._calls.apply(event)]
                if not result.failed:
                    done += _plan_events(result.name, result.details)
                return done
            case _:
                return [_tool_event(change) for change in self._calls.apply(event)]

    def _end_event(self) -> tuple[str, JsonObject]:
        run = self._run
        usage = response_usage(usage_of(run))
        if run.status == "cancelled":
            return "run.cancelled", {"output": run.text, "usage": usage}
        if (failed := run_error(run)) is not None:
            return "run.failed", {"error": failed.error, "usage": usage}
        return "run.completed", {"output": run.text, "usage": usage}


def _plan_events(tool: str, details: JsonObject) -> list[tuple[str, JsonObject]]:
    """The task list whenever the agent updates it, or the steps of a plan."""
    if tool not in ("plan", "todo") or "todos" not in details:
        return []
    facts: JsonObject = {"plan": details["todos"]}
    return [
        ("plan.updated", facts | {k: details[k] for k in ("plan_id", "status") if k in details})
    ]


def _tool_event(change: CallStarted | CallFinished) -> tuple[str, JsonObject]:
    facts: JsonObject = {"tool": change.call.name, "tool_call_id": change.call.id}
    match change:
        case CallStarted():
            return "tool.started", {**facts, "preview": describe_call(change.call).detail}
        case CallFinished(result=result, seconds=seconds):
            return "tool.completed", {**facts, "duration": seconds, "error": result.failed}
