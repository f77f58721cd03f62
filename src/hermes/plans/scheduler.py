"""Runs the steps of a plan in dependency order, in parallel where that is safe, with recovery."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.core.messages import ToolResult
from hermes.core.tool_calls import UNKNOWN_OUTCOME
from hermes.plans.conditions import Condition, ConditionError
from hermes.plans.model import (
    ENDED,
    ExecutionStep,
    PlanSettings,
    PlanState,
    PlanStatus,
    StepState,
)
from hermes.plans.references import MissingValue, StepResult, resolve
from hermes.plans.step_call import CallStep, StepFailure, run_step
from hermes.plans.validation import PlanTool, resource_of, risk_of

BACKOFF_SECONDS = (1.0, 4.0, 16.0)
# How long running steps may still finish after the person stopped the turn.
STOP_SECONDS = 0.3

Sleep = Callable[[float], Awaitable[None]]


class Recovery(Protocol):
    """What a plan needs of a model or a person when a step fails."""

    async def repair(self, step: ExecutionStep, error: str, attempt: int) -> JsonObject | None:
        """Return other parameters for a step whose parameters cannot be used."""
        ...

    async def replan(self, state: PlanState) -> PlanState | None:
        """Return the state with a plan that keeps the finished steps and replaces the others; None
        if there is none."""
        ...

    def known_replan(self, state: PlanState) -> PlanState | None:
        """Return what `replan` returned before a crash."""
        ...

    async def decide_unknown(self, step: ExecutionStep, attempt: int) -> str:
        """Return "again", "done" or "stop" for a step that may or may not have run; "" if nobody
        answers."""
        ...


class PlanRun:
    """One run of a plan. Its result depends only on the plan and the results of calls, so that a
    run after a crash goes the same way as far as results are known."""

    def __init__(
        self,
        state: PlanState,
        tools: Mapping[str, PlanTool],
        settings: PlanSettings,
        *,
        call: CallStep,
        recovery: Recovery,
        stop: asyncio.Event,
        sleep: Sleep = asyncio.sleep,
        on_change: Callable[[PlanState], None] = lambda _state: None,
    ) -> None:
        self.state = replace(state, status="running")
        self._tools = tools
        self._settings = settings
        self._call = call
        self._recovery = recovery
        self._stop = stop
        self._sleep = sleep
        self._on_change = on_change
        self._running: dict[asyncio.Task[None], ExecutionStep] = {}
        self._resources: dict[str, str] = {}
        # Steps whose failure asks for a new plan.
        self._to_replan: set[str] = set()
        self._aborted = False

    async def run(self) -> PlanState:
        try:
            self._repeat_replans()
            await self._reconsider_unknown()
            while not self._aborted and not self._stop.is_set():
                before = self.state
                self._skip_unreachable()
                if not self._to_replan:
                    self._start_ready()
                if self._running:
                    await self._wait()
                elif self._to_replan:
                    await self._replan()
                elif self.state is before:
                    break
        finally:
            await self._cancel_running()
        return self._end()

    def _repeat_replans(self) -> None:
        """Continue with the newest plan of a run that a crash ended."""
        while (known := self._recovery.known_replan(self.state)) is not None:
            self.state = known

    async def _reconsider_unknown(self) -> None:
        """Ask about steps that an earlier process may or may not have finished."""
        for step in self.state.plan.steps:
            if self._status(step.step_id) == "unknown":
                await self._settle_unknown(step)

    async def _settle_unknown(self, step: ExecutionStep) -> None:
        state = self.state.state(step.step_id)
        choice = await self._recovery.decide_unknown(step, state.attempts)
        match choice:
            case "again":
                self._set(step, replace(state, status="pending", error=""))
            case "done":
                self._set(step, replace(state, status="done", error=""))
            case _:
                # Without an answer, steps that do not need this one go on.
                self._set(step, replace(state, status="unknown", error=UNKNOWN_OUTCOME))
                self._aborted |= choice == "stop" or self._on_failure(step) == "abort"

    # Starting steps.

    def _start_ready(self) -> None:
        for step in self.state.plan.steps:
            if len(self._running) >= self._settings.max_parallel:
                return
            if self._status(step.step_id) == "pending" and self._is_ready(step):
                self._try_to_start(step)

    def _is_ready(self, step: ExecutionStep) -> bool:
        if not all(self._status(name) in ENDED for name in step.depends_on):
            return False
        return bool(step.condition) or not any(map(self._blocks, step.depends_on))

    def _try_to_start(self, step: ExecutionStep) -> None:
        """Start a step, unless its condition does not hold or another step must end first."""
        try:
            if step.condition and not Condition(step.condition).holds(self._lookup):
                self._change(step, status="skipped", error="The condition did not hold.")
                return
        except (ConditionError, MissingValue) as error:
            self._fail(step, str(error))
            return
        if risk_of(step, self._tools) != "read" and not step.parallel_safe:
            others = (risk_of(each, self._tools) for each in self._running.values())
            if any(other != "read" for other in others):
                return
        resource = resource_of(step, step.parameters)
        if resource and resource in self._resources.values():
            return
        if resource:
            self._resources[step.step_id] = resource
        self._change(step, status="running", error="")
        task = asyncio.ensure_future(self._execute(step))
        self._running[task] = step

    def _skip_unreachable(self) -> None:
        """Skip steps that need a step which failed or was skipped. A step with a condition decides
        itself, and one may continue after a failed step that says so."""
        changed = True
        while changed:
            changed = False
            for step in self.state.plan.steps:
                if self._status(step.step_id) != "pending" or step.condition:
                    continue
                if blocked := next((n for n in step.depends_on if self._blocks(n)), None):
                    self._change(step, status="skipped", error=f"{blocked} has no result.")
                    changed = True

    def _blocks(self, name: str) -> bool:
        status = self._status(name)
        if status in ("skipped", "cancelled", "unknown"):
            return True
        dependency = self.state.plan.by_id[name]
        return (
            status == "failed"
            and name not in self._to_replan
            and self._on_failure(dependency) != "continue"
        )

    # Running steps.

    async def _execute(self, step: ExecutionStep) -> None:
        repaired = False
        parameters: JsonObject = step.parameters
        while True:
            state = self.state.state(step.step_id)
            attempt = state.attempts + 1
            self._set(step, replace(state, attempts=attempt))
            key = f"{step.step_id}.v{state.version}.{attempt}"
            try:
                resolved = resolve(parameters, self._lookup) if step.tool_name != "map" else None
                given = resolved if isinstance(resolved, dict) else parameters
                seconds = step.timeout or self._settings.step_timeout
                async with asyncio.timeout(seconds):
                    result = await run_step(
                        step, given, key, self._call, self._lookup, self._settings, self._tools
                    )
            except TimeoutError:
                failure = StepFailure(f"The step timed out after {seconds:g} seconds.", "transient")
            except MissingValue as error:
                failure = StepFailure(str(error), "invalid")
            except StepFailure as error:
                failure = error
            else:
                self._finish(step, result)
                return
            if self._stop.is_set():
                self._interrupt(step, started=failure.why != "skipped")
                return
            if failure.why == "unknown":
                await self._settle_unknown(step)
                if self._status(step.step_id) != "pending":
                    return
                self._change(step, status="running")
            elif failure.why == "invalid" and not repaired:
                repaired = True
                other = await self._recovery.repair(step, failure.text, attempt)
                if other is None:
                    self._fail(step, failure.text)
                    return
                parameters = other
            elif self._may_retry(step, failure, attempt):
                await self._sleep(BACKOFF_SECONDS[min(attempt, len(BACKOFF_SECONDS)) - 1])
            else:
                self._fail(step, failure.text)
                return

    def _interrupt(self, step: ExecutionStep, *, started: bool = True) -> None:
        """A step ended because the person stopped the turn: it runs later, unless it may have had
        an effect that must not happen twice."""
        tool = self._tools.get(step.tool_name)
        repeats = not started or (tool is not None and tool.repeats)
        if repeats:
            self._change(step, status="pending")
        else:
            self._change(step, status="unknown", error=UNKNOWN_OUTCOME)

    def _may_retry(self, step: ExecutionStep, failure: StepFailure, attempt: int) -> bool:
        """Only what may run twice is tried again."""
        most = self._settings.max_retries if step.retries is None else step.retries
        name = step.tool_name
        if name == "map":
            name = str(step.parameters["step"].get("tool_name"))
        tool = self._tools.get(name)
        repeats = tool is not None and (tool.repeats or tool.risk == "read")
        return (
            repeats
            and failure.why == "transient"
            and attempt <= min(most, self._settings.max_retries)
        )

    def _finish(self, step: ExecutionStep, result: ToolResult) -> None:
        text, details = result.text, dict(result.details)
        path = str(details.pop("persisted", ""))
        self._change(step, status="done", text=text, details=details, result_path=path)

    def _fail(self, step: ExecutionStep, error: str) -> None:
        self._change(step, status="failed", error=error)
        action = self._on_failure(step)
        if action == "abort":
            self._aborted = True
        elif action == "replan" and self.state.replans < self._settings.max_replans:
            self._to_replan.add(step.step_id)

    def _on_failure(self, step: ExecutionStep) -> str:
        if step.on_failure:
            return step.on_failure
        return "replan" if self.state.plan.dependants_of(step.step_id) else "skip"

    # Waiting, replanning, ending.

    async def _wait(self) -> None:
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((*self._running, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        for task in [task for task in self._running if task.done()]:
            step = self._running.pop(task)
            self._resources.pop(step.step_id, None)
            task.result()

    async def _replan(self) -> None:
        """Replace the unfinished steps. No step runs meanwhile."""
        replanned = await self._recovery.replan(self.state)
        self._to_replan.clear()
        # Without a new plan, the failed steps stay failed.
        self.state = replanned or replace(self.state, replans=self._settings.max_replans)
        self._on_change(self.state)

    async def _cancel_running(self) -> None:
        """End the running steps. One that may have had an effect has an unknown outcome."""
        if not self._running:
            return
        await asyncio.wait(self._running, timeout=STOP_SECONDS if self._stop.is_set() else 0)
        for task, step in self._running.items():
            if not task.done():
                task.cancel()
                if self._aborted and not self._stop.is_set():
                    self._change(step, status="cancelled")
                elif self._status(step.step_id) == "running":
                    self._interrupt(step)
        await asyncio.wait(self._running, timeout=STOP_SECONDS)
        self._running.clear()

    def _end(self) -> PlanState:
        if self._aborted:
            for step in self.state.plan.steps:
                if self._status(step.step_id) == "pending":
                    self._change(step, status="cancelled", error="The plan was aborted.")
        self.state = replace(self.state, status=self._final_status())
        self._on_change(self.state)
        return self.state

    def _final_status(self) -> PlanStatus:
        found = [self._status(step.step_id) for step in self.state.plan.steps]
        if self._stop.is_set() and any(status not in ("done", "skipped") for status in found):
            return "cancelled"
        if all(status in ("done", "skipped") for status in found) and "done" in found:
            return "completed"
        if self._aborted or "done" not in found:
            return "failed"
        return "partial"

    # State.

    def _status(self, step_id: str) -> str:
        return self.state.state(step_id).status

    def _lookup(self, name: str, path: str) -> JsonValue:
        state = self.state.state(name)
        if state.status != "done":
            return None
        return StepResult(state.text, state.details).at(path)

    def _change(self, step: ExecutionStep, **changes: object) -> None:
        self._set(step, replace(self.state.state(step.step_id), **changes))

    def _set(self, step: ExecutionStep, state: StepState) -> None:
        self.state = self.state.with_step(step.step_id, state)
        self._on_change(self.state)
