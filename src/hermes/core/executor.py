"""Runs the tool calls of a reply, in parallel where they are independent."""

from __future__ import annotations

import asyncio

from hermes.codec.values import replace
from hermes.core.change_order import STALE, ChangeOrder
from hermes.core.effects import Effect
from hermes.core.errors import ToolError
from hermes.core.events import ToolFinished, ToolIntended, ToolStarted
from hermes.core.gate import CallGate
from hermes.core.hooks import CallOutcome, outcome_of
from hermes.core.messages import Failure, Text, ToolCall, ToolResult
from hermes.core.planning import DUPLICATE, PlannedCall, group_parallel, refuse_call
from hermes.core.session_deps import TurnContext
from hermes.core.tool_calls import (
    HERE,
    INTERRUPTED,
    UNKNOWN_OUTCOME,
    admit,
    plan_with_hooks,
    run_call,
    show_refusal,
    watch_changes,
)

LOST_SECRET = (
    "not run: Hermes was stopped before this call began, and the secret in its arguments was not "
    "kept. Make the call again if it is still wanted."
)


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
        planned = await plan_with_hooks(turn, call, seen, continued=continued)
        if isinstance(planned, ToolResult):
            await batch.answer(call, planned, outcome_of(planned))
            continue
        tool, refusal = planned.tool, ""
        if continued and tool.repeat == "never" and call.id in transcript.started:
            refusal = UNKNOWN_OUTCOME
        elif continued and turn.recorder.redactor.lacks(planned.call):
            refusal = LOST_SECRET
        if refusal:
            why: Failure | None = "unknown" if refusal == UNKNOWN_OUTCOME else None
            answer = batch.finalize_result(call, refuse_call(call, refusal, why), 0.0)
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
            watch_changes(turn, plan, gate)
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
            note_change = gate.before_change

            async def before_change(effect: Effect, allowed_before: list[Effect]) -> None:
                if note_change is not None:
                    await note_change(effect, allowed_before)
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

    async def _admit(self, plan: PlannedCall, gate: CallGate) -> bool:
        """Whether every declared effect is allowed. If not, the call gets its result here."""
        if (refused := await admit(plan, gate)) is not None:
            await self.answer(plan.call, refused, "blocked")
        return refused is None

    async def _run_one(self, plan: PlannedCall, gate: CallGate, slots: asyncio.Semaphore) -> None:
        turn = self._turn
        async with slots:
            result, seconds = await run_call(turn, plan, gate)
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

    async def answer(self, call: ToolCall, result: ToolResult, fate: CallOutcome) -> None:
        """Record the result of a call that does not run."""
        self._finish(call, await show_refusal(self._turn, call, result, fate), 0.0)

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
        # A model that stutters within one reply is not in a loop.
        is_new = DUPLICATE not in result.details
        added = [self._turn.watch.observe(call, result, seconds) if is_new else ""]
        if call.id == self._last_id:
            added.append(self._hint)
        words = "\n".join(word for word in added if word)
        if not words:
            return result
        return replace(result, parts=(*result.parts, Text(text="\n\n" + words)))
