"""One tool call, from its plan to its result. Calls of the model and inner calls, which running
tools make, take the same path."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, cast

from hermes.codec.values import JsonObject, replace
from hermes.core.delegating import GatedFetcher, GatedWorkspace
from hermes.core.effects import Effect
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.events import (
    InnerCallFinished,
    InnerCallIntended,
    ToolProgress,
    ToolStarted,
    inner_id,
)
from hermes.core.gate import CallGate, is_harmless
from hermes.core.hooks import CallOutcome, after_tool, before_tool, outcome_of
from hermes.core.messages import Denial, ToolCall, ToolResult
from hermes.core.planning import PlannedCall, plan_call, refuse_call
from hermes.core.ports import Fetcher, Workspace
from hermes.core.session_deps import TurnContext
from hermes.core.tools import ServiceT, Tool, ToolOutput, ToolSettings

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.7
HERE = "workspace"
UNKNOWN_OUTCOME = (
    "interrupted: outcome unknown. Hermes was stopped while this call ran; "
    "check what happened before you repeat it."
)
# Why a call did not begin.
INTERRUPTED = "skipped: the person interrupted before this call began."
STEPS_USED_UP = "skipped: the steps of this turn are used up."
TURN_ENDED = "skipped: the turn ended before this call began."
NOT_RUN = frozenset((INTERRUPTED, STEPS_USED_UP, TURN_ENDED))


async def plan_with_hooks(
    turn: TurnContext,
    call: ToolCall,
    seen: set[str],
    *,
    continued: bool,
    tool: Tool | None = None,
    also: frozenset[str] = frozenset(),
) -> PlannedCall | ToolResult:
    """See `plan_call`. Hooks run first, and the policy judges the call as they changed it. They do
    not see a call again that had started before."""
    ask = ""
    # Models reuse call ids, so the recorded answer may belong to another call.
    known = turn.recorder.transcript.hook_answers.get(call.id) if continued else None
    if turn.hooks is not None or known is not None:
        begun = continued and call.id in turn.recorder.transcript.started
        changed = await before_tool(turn, None if begun else turn.hooks, call, known)
        if isinstance(changed, ToolResult):
            return changed
        call, ask = changed
    make = partial(plan_call, turn, call, seen, tool=tool, also=also)
    planned = await asyncio.to_thread(make) if turn.workspace.is_remote else make()
    if isinstance(planned, PlannedCall):
        planned.ask = ask
    return planned


async def admit(plan: PlannedCall, gate: CallGate) -> ToolResult | None:
    """Wait until every declared effect is allowed. Return the result of a call that may not run."""
    try:
        for effect in plan.effects:
            await gate.require(effect, declared=True)
        if plan.ask:
            await gate.confirm(plan.as_effect, plan.ask)
    except EffectDenied as denied:
        return replace(refuse_call(plan.call, str(denied)), denied=denied.by)
    return None


def watch_changes(turn: TurnContext, plan: PlannedCall, gate: CallGate) -> None:
    """Remember a tool that changes something without declaring it."""

    async def note_change(_effect: Effect, _before: list[Effect]) -> None:
        turn.gate.changing_tools.add(plan.tool.name)

    if not plan.judged and not plan.tool.orders_effects:
        gate.before_change = note_change


async def run_call(
    turn: TurnContext, plan: PlannedCall, gate: CallGate
) -> tuple[ToolResult, float]:
    """Run an admitted call. Return its result, redacted and as hooks changed it, and the seconds
    that it took."""
    begun = turn.world.clock.monotonic()
    # Before it is stored or cut: half of a secret is no longer recognised.
    result = turn.recorder.redactor.result(await _run_with_limits(turn, plan, gate))
    turn.world.kill_point("tool.effect")
    seconds = turn.world.clock.monotonic() - begun
    if turn.hooks is not None:
        result = await after_tool(turn, turn.hooks, plan.call, result, seconds)
    return result, seconds


async def show_refusal(
    turn: TurnContext, call: ToolCall, result: ToolResult, fate: CallOutcome
) -> ToolResult:
    """Let hooks see the result of a call that does not run."""
    if turn.hooks is None or call.broken:
        return result
    return await after_tool(turn, turn.hooks, call, result, 0.0, fate)


async def _run_with_limits(turn: TurnContext, plan: PlannedCall, gate: CallGate) -> ToolResult:
    """The tool's result. When the person stops the turn, the tool has a moment to return a partial
    result; then it is cancelled."""
    work = asyncio.ensure_future(_run_tool(turn, plan, gate))
    is_timed = plan.tool.interactive or plan.tool.timed
    limit = None if is_timed else turn.limits.tools_seconds or None
    try:
        await asyncio.wait(
            (work, turn.stop.requested), timeout=limit, return_when=asyncio.FIRST_COMPLETED
        )
        if not work.done() and turn.stop.is_set():
            await asyncio.wait((work,), timeout=GRACE_SECONDS)
        if work.done():
            return work.result()
        if turn.stop.is_set():
            return refuse_call(plan.call, UNKNOWN_OUTCOME, "unknown")
        why = f"{plan.tool.name} took too long and was given up."
        return refuse_call(plan.call, why, "transient")
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait((work,), timeout=GRACE_SECONDS)


async def _run_tool(turn: TurnContext, plan: PlannedCall, gate: CallGate) -> ToolResult:
    denied: Denial | None = None
    try:
        ctx = CallContext(turn, plan.call.id, gate, is_inner=plan.is_inner)
        output = await plan.tool(ctx, plan.arguments)
    except ToolError as error:
        output = ToolOutput.text(str(error), failed=True)
        if error.transient:
            output = replace(output, failure="transient")
        denied = error.by if isinstance(error, EffectDenied) else None
    except Exception:
        log.exception("tool crashed", extra={"tool": plan.tool.name})
        output = ToolOutput.text(
            f"{plan.tool.name} crashed. Its state is unknown; check before trying again.",
            failed=True,
        )
    return ToolResult(
        call_id=plan.call.id,
        name=plan.tool.name,
        parts=output.parts,
        failed=output.failed,
        origin=output.origin if plan.tool.names_inner_sources else _origin_of(output, gate),
        details=output.details,
        denied=denied,
        failure=output.failure,
    )


def _origin_of(output: ToolOutput, gate: CallGate) -> str:
    """The sources of a result: those that the tool names, or those of what it has read. Text of
    inner calls counts in any case."""
    if output.origin == HERE:
        return gate.origin or HERE
    return ", ".join(dict.fromkeys((output.origin, *gate.inner_sources)))


class CallContext:
    """The services that one tool call can access. The model does not see what an inner call
    returns, so services that record what the model has seen know nothing of it."""

    def __init__(
        self, turn: TurnContext, call_id: str, gate: CallGate, *, is_inner: bool = False
    ) -> None:
        self.call_id = call_id
        self.workspace: Workspace = GatedWorkspace(turn.workspace, gate)
        self.web: Fetcher = GatedFetcher(turn.web, gate)
        self.settings: ToolSettings = turn.limits.settings
        self.stop: asyncio.Event = turn.stop
        self._turn = turn
        self._gate = gate
        self._is_inner = is_inner

    def progress(self, text: str, details: JsonObject | None = None) -> None:
        shown = ToolProgress(call_id=self.call_id, text=text, details=details or {})
        self._turn.recorder.show(shown)

    def latest(self, tool: str) -> JsonObject | None:
        return self._turn.recorder.transcript.latest(tool)

    def service(self, kind: type[ServiceT]) -> ServiceT:
        if self._is_inner and getattr(kind, "records_model_view", False):
            return kind()
        return cast(ServiceT, self._turn.services.get(cast(Any, kind)))

    async def call_tool(
        self, tool: str | Tool, arguments: JsonObject, *, key: str, origin: str = ""
    ) -> ToolResult:
        inner = InnerCall(self._turn, self._gate, self.call_id, key, origin)
        return await inner.make(tool, arguments)

    def known_result(self, key: str) -> ToolResult | None:
        return self._turn.recorder.transcript.inner_results.get(inner_id(self.call_id, key))

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        seconds = self.settings.clarify_timeout
        return await self._turn.questions.ask(self.call_id, question, choices, seconds, self.stop)


class InnerCall:
    """A call that the running call `caller_id` makes. `caller` is the gate of that call."""

    def __init__(
        self, turn: TurnContext, caller: CallGate, caller_id: str, key: str, origin: str
    ) -> None:
        self._turn = turn
        self._caller = caller
        self._caller_id = caller_id
        self._key = key
        self._also = caller.sources | (frozenset((origin,)) if origin else frozenset())
        self._id = inner_id(caller_id, key)

    async def make(self, tool: str | Tool, arguments: JsonObject) -> ToolResult:
        recorder, transcript = self._turn.recorder, self._turn.recorder.transcript
        own = tool if isinstance(tool, Tool) else None
        call = ToolCall(id=self._id, name=own.name if own else str(tool), arguments=arguments)
        if (result := transcript.inner_results.get(self._id)) is None:
            if self._turn.stop.is_set():
                return refuse_call(call, INTERRUPTED, "skipped")
            if self._id not in transcript.inner_intended:
                caller_id, key = self._caller_id, self._key
                recorder.note(
                    InnerCallIntended(
                        call_id=caller_id, key=key, name=call.name, arguments=arguments
                    )
                )
            result = await self._run(call, own)
        if result.origin != HERE:
            self._caller.add_inner_source(result.origin)
        return result

    async def _run(self, call: ToolCall, own: Tool | None) -> ToolResult:
        turn, transcript = self._turn, self._turn.recorder.transcript
        planned = await plan_with_hooks(
            turn,
            call,
            set(),
            continued=self._id in transcript.inner_intended,
            tool=own,
            also=self._also,
        )
        if isinstance(planned, ToolResult):
            return await self._refuse(call, planned, outcome_of(planned))
        tool, planned.is_inner = planned.tool, True
        if tool.repeat == "never" and self._id in transcript.started:
            return await self._finish(refuse_call(call, UNKNOWN_OUTCOME, "unknown"), 0.0)
        gate = CallGate(turn.gate, self._id, turn.stop, also=self._also)
        # A caller that waits for its order among parallel calls waits before inner changes too.
        gate.before_change = self._caller.before_change
        if (refused := await admit(planned, gate)) is not None:
            return await self._refuse(planned.call, refused, "blocked")
        if gate.before_change is None:
            watch_changes(turn, planned, gate)
        turn.recorder.note(ToolStarted(call_id=self._id))
        if tool.repeat == "never" or not all(map(is_harmless, planned.judged)):
            await turn.recorder.commit()
        turn.world.kill_point("inner.started")
        result, seconds = await run_call(turn, planned, gate)
        return await self._finish(
            await turn.result_limiter.fit_inner(result), seconds, lasts=tool.repeat == "never"
        )

    async def _refuse(self, call: ToolCall, result: ToolResult, fate: CallOutcome) -> ToolResult:
        return await self._finish(await show_refusal(self._turn, call, result, fate), 0.0)

    async def _finish(
        self, result: ToolResult, seconds: float, *, lasts: bool = False
    ) -> ToolResult:
        """Record the result. If it `lasts`, the call must not be repeated, so commit it now; the
        result of any other call may wait for the next commit."""
        recorder = self._turn.recorder
        finished = InnerCallFinished(
            call_id=self._caller_id, key=self._key, result=result, seconds=round(seconds, 3)
        )
        if lasts:
            await recorder.commit(finished)
        else:
            recorder.note(finished)
            recorder.apply_pending()
        self._turn.world.kill_point("inner.finished")
        return result
