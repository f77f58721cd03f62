"""Runs the tool calls of a reply, in parallel where they are independent."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, cast

from hermes.codec.values import JsonObject, replace
from hermes.core.change_order import STALE, ChangeOrder
from hermes.core.delegating import GatedFetcher, GatedWorkspace
from hermes.core.effects import Effect
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.events import ToolFinished, ToolIntended, ToolProgress, ToolStarted
from hermes.core.gate import CallGate
from hermes.core.hooks import CallOutcome, after_tool, before_tool, outcome_of
from hermes.core.messages import Denial, Text, ToolCall, ToolResult
from hermes.core.planning import PlannedCall, group_parallel, plan_call, refuse_call
from hermes.core.ports import Fetcher, Workspace
from hermes.core.session_deps import TurnContext
from hermes.core.tools import ServiceT, ToolOutput, ToolSettings

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.7
HERE = "workspace"
UNKNOWN_OUTCOME = (
    "interrupted: outcome unknown. Hermes was stopped while this call ran; "
    "check what happened before you repeat it."
)
LOST_SECRET = (
    "not run: Hermes was stopped before this call began, and the secret in its arguments was not "
    "kept. Make the call again if it is still wanted."
)
# Why a call did not begin.
INTERRUPTED = "skipped: the person interrupted before this call began."
STEPS_USED_UP = "skipped: the steps of this turn are used up."
TURN_ENDED = "skipped: the turn ended before this call began."
NOT_RUN = frozenset((INTERRUPTED, STEPS_USED_UP, TURN_ENDED))


async def run_calls(
    turn: TurnContext, calls: tuple[ToolCall, ...], *, continued: bool = False
) -> None:
    """Record a result for every call. After a crash, a call that may have run and must not run
    twice gets the result "outcome unknown" instead."""
    batch = CallBatch(turn, calls)
    transcript = turn.recorder.transcript
    seen: set[str] = set()
    plans: list[PlannedCall] = []
    refused_before = turn.watch.refused
    for call in calls:
        planned = await _plan(turn, call, seen, continued=continued)
        if isinstance(planned, ToolResult):
            await batch.answer(call, planned, outcome_of(planned))
            continue
        tool, refusal = planned.tool, ""
        if continued and tool.repeat == "never" and call.id in transcript.started:
            refusal = UNKNOWN_OUTCOME
        elif continued and turn.recorder.redactor.lacks(planned.call):
            refusal = LOST_SECRET
        if refusal:
            answer = batch.finalize_result(call, refuse_call(call, refusal), 0.0)
            turn.recorder.note(ToolFinished(result=answer))
            continue
        plans.append(planned)
        if not (continued and call.id in transcript.intended):
            id, judged = planned.call.id, planned.judged
            turn.recorder.note(
                ToolIntended(call_id=id, name=tool.name, repeat=tool.repeat, judged=judged)
            )
    # A refused call is valid; what repeats it is the matter of the guardrails.
    is_valid = bool(plans) or turn.watch.refused > refused_before
    turn.fruitless = 0 if is_valid else turn.fruitless + 1
    for group in group_parallel(plans):
        await batch.run(group)


async def _plan(
    turn: TurnContext, call: ToolCall, seen: set[str], *, continued: bool
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
    if turn.workspace.is_remote:
        planned = await asyncio.to_thread(plan_call, turn, call, seen)
    else:
        planned = plan_call(turn, call, seen)
    if isinstance(planned, PlannedCall):
        planned.ask = ask
    return planned


class CallBatch:
    """The calls of one reply while they run."""

    def __init__(self, turn: TurnContext, calls: tuple[ToolCall, ...]) -> None:
        self._turn = turn
        self._left = {call.id for call in calls}
        self._last_id = calls[-1].id if calls else ""
        self._hint = turn.budget.hint()

    async def run(self, group: list[PlannedCall]) -> None:
        turn = self._turn
        if turn.stop.is_set():
            for plan in group:
                self._finish(plan.call, refuse_call(plan.call, INTERRUPTED), 0.0)
            return
        gates = [CallGate(turn.gate, plan.call.id, turn.stop, plan.judged) for plan in group]
        allowed = [
            (plan, gate)
            for plan, gate in zip(group, gates, strict=True)
            if await self._admit(plan, gate)
        ]
        if not allowed:
            return
        await turn.recorder.commit(*(ToolStarted(call_id=plan.call.id) for plan, _ in allowed))
        turn.world.kill_point("tool.started")
        for plan, gate in allowed:
            if not plan.judged and not plan.tool.orders_effects:
                gate.before_change = partial(self._note_change, plan.tool.name)
        slots = asyncio.Semaphore(turn.limits.tools_at_once)
        if len(allowed) == 1:
            # A task of its own would only cost extra rounds of the event loop.
            await self._run_one(*allowed[0], slots)
        elif any(gate.before_change for _, gate in allowed):
            await self._run_ordered(allowed, slots)
        else:
            await asyncio.gather(*(self._run_one(plan, gate, slots) for plan, gate in allowed))

    async def _run_ordered(
        self, allowed: list[tuple[PlannedCall, CallGate]], slots: asyncio.Semaphore
    ) -> None:
        """Run calls in parallel of which some may turn out to change something."""
        order = ChangeOrder()

        async def run(number: int, plan: PlannedCall, gate: CallGate) -> None:
            async def before_change(effect: Effect, allowed_before: list[Effect]) -> None:
                await self._note_change(plan.tool.name, effect, allowed_before)
                await order.wait(number)
                if order.is_stale(number, allowed_before):
                    raise ToolError(STALE)
                order.add_change(number, effect)

            if gate.before_change is not None:
                gate.before_change = before_change
            async with slots:
                await order.enter(number)
                try:
                    await self._run_one(plan, gate, asyncio.Semaphore())
                finally:
                    order.leave(number)

        await asyncio.gather(*(run(number, *each) for number, each in enumerate(allowed)))

    async def _note_change(self, name: str, _effect: Effect, _before: list[Effect]) -> None:
        self._turn.gate.changing_tools.add(name)

    async def _admit(self, plan: PlannedCall, gate: CallGate) -> bool:
        """Whether every declared effect is allowed. If not, the call gets its result here."""
        try:
            for effect in plan.effects:
                await gate.require(effect)
            if plan.ask:
                await gate.confirm(plan.as_effect, plan.ask)
        except EffectDenied as denied:
            answer = replace(refuse_call(plan.call, str(denied)), denied=denied.by)
            await self.answer(plan.call, answer, "blocked")
            return False
        return True

    async def _run_one(self, plan: PlannedCall, gate: CallGate, slots: asyncio.Semaphore) -> None:
        turn = self._turn
        async with slots:
            begun = turn.world.clock.monotonic()
            # Before it is stored or cut: half of a secret is no longer recognised.
            result = turn.recorder.redactor.result(await self._run_with_limits(plan, gate))
        turn.world.kill_point("tool.effect")
        seconds = turn.world.clock.monotonic() - begun
        if turn.hooks is not None:
            result = await after_tool(turn, turn.hooks, plan.call, result, seconds)
        self._finish(
            plan.call, await self._add_remark(plan, await turn.result_limiter.fit(result)), seconds
        )
        if self._left:
            # Other calls still run: commit this result without waiting for them.
            await turn.recorder.commit()
        turn.world.kill_point("tool.finished")

    async def _add_remark(self, plan: PlannedCall, result: ToolResult) -> ToolResult:
        """Add the text of `SessionDeps.remark`. A result in a file stays as it is."""
        if self._turn.remark is None or result.failed or "persisted" in result.details:
            return result
        words, origin = await self._turn.remark(plan.call, result)
        if not words:
            return result
        known = result.origin if result.origin != HERE else ""
        origin = ", ".join(dict.fromkeys(each for each in (known, origin) if each))
        return replace(
            result, parts=(*result.parts, Text(text=words)), origin=origin or result.origin
        )

    async def _run_with_limits(self, plan: PlannedCall, gate: CallGate) -> ToolResult:
        """The tool's result. When the person stops the turn, the tool has a moment to return a
        partial result; then it is cancelled."""
        turn = self._turn
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
                return refuse_call(plan.call, UNKNOWN_OUTCOME)
            return refuse_call(plan.call, f"{plan.tool.name} took too long and was given up.")
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait((work,), timeout=GRACE_SECONDS)

    async def answer(self, call: ToolCall, result: ToolResult, fate: CallOutcome) -> None:
        """Record the result of a call that does not run."""
        hooks = self._turn.hooks
        if hooks is not None and not call.broken:
            result = await after_tool(self._turn, hooks, call, result, 0.0, fate)
        self._finish(call, result, 0.0)

    def _finish(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        self._turn.recorder.note(
            ToolFinished(
                result=self.finalize_result(call, result, seconds), seconds=round(seconds, 3)
            )
        )

    def finalize_result(self, call: ToolCall, result: ToolResult, seconds: float) -> ToolResult:
        """Count the call as finished. Return its result with a loop warning and the state of the
        step budget where the model needs them."""
        self._left.discard(call.id)
        added = [self._turn.watch.observe(call, result, seconds)]
        if call.id == self._last_id:
            added.append(self._hint)
        words = "\n".join(word for word in added if word)
        if not words:
            return result
        return replace(result, parts=(*result.parts, Text(text="\n\n" + words)))


async def _run_tool(turn: TurnContext, plan: PlannedCall, gate: CallGate) -> ToolResult:
    denied: Denial | None = None
    try:
        output = await plan.tool(CallContext(turn, plan.call.id, gate), plan.arguments)
    except ToolError as error:
        output = ToolOutput.text(str(error), failed=True)
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
        origin=output.origin if output.origin != HERE else gate.origin or HERE,
        details=output.details,
        denied=denied,
    )


class CallContext:
    """The services that one tool call can access."""

    def __init__(self, turn: TurnContext, call_id: str, gate: CallGate) -> None:
        self.call_id = call_id
        self.workspace: Workspace = GatedWorkspace(turn.workspace, gate)
        self.web: Fetcher = GatedFetcher(turn.web, gate)
        self.settings: ToolSettings = turn.limits.settings
        self.stop: asyncio.Event = turn.stop
        self._turn = turn

    def progress(self, text: str) -> None:
        self._turn.recorder.show(ToolProgress(call_id=self.call_id, text=text))

    def latest(self, tool: str) -> JsonObject | None:
        return self._turn.recorder.transcript.latest(tool)

    def service(self, kind: type[ServiceT]) -> ServiceT:
        return cast(ServiceT, self._turn.services.get(cast(Any, kind)))

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        seconds = self.settings.clarify_timeout
        return await self._turn.questions.ask(self.call_id, question, choices, seconds, self.stop)
