"""Writes and repairs plans with a model, as inner calls, so that a crash repeats none of it."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.codec.json import convert, encode, plain
from hermes.codec.values import JsonObject, replace
from hermes.core.errors import ToolError
from hermes.core.tools import Tool, ToolContext
from hermes.plans.model import ExecutionStep, Plan, PlanSettings, PlanState, Problem, StepState
from hermes.plans.planner import (
    PlanUnreadable,
    draft_request,
    merge_replan,
    read_parameters,
    read_plan,
    repair_request,
    replan_request,
    with_problems,
)
from hermes.plans.validation import CheckedPlan, PlanTool, check_plan

REPAIR_ROUNDS = 2
AGAIN, DONE, STOP = "run it again", "treat it as done", "stop"


class Planner:
    """The model and the person behind one call of the tool `plan`. `ask_model` and `ask_user` are
    private tools of it."""

    def __init__(
        self,
        ctx: ToolContext,
        tools: Mapping[str, PlanTool],
        settings: PlanSettings,
        *,
        ask_model: Tool,
        ask_user: Tool,
    ) -> None:
        self._ctx = ctx
        self._tools = tools
        self._settings = settings
        self._ask_model = ask_model
        self._ask_user = ask_user

    async def draft(self, goal: str, facts: str) -> CheckedPlan:
        """Return a valid plan; raise ToolError if the model writes none."""
        request = draft_request(goal, facts, self._tools)
        for number in range(REPAIR_ROUNDS + 1):
            text = await self._ask(f"draft.{number}", request)
            try:
                checked = check_plan(read_plan(text, goal), self._tools, self._settings)
                if not checked.problems:
                    return checked
                problems = checked.problems
            except PlanUnreadable as error:
                problems = (Problem(message=str(error)),)
            request = with_problems(draft_request(goal, facts, self._tools), text, problems)
        raise ToolError(
            f"No valid plan came about: {problems[0].message} Nothing was run; "
            "go on without a plan."
        )

    async def revise(self, state: PlanState, feedback: str, key: str) -> PlanState:
        """Return the state with a plan that follows the feedback; raise ToolError."""
        revised = await self._replan(state, key, feedback)
        if revised is None:
            raise ToolError("No valid plan came about; the plan is unchanged.")
        return revised

    async def replan(self, state: PlanState) -> PlanState | None:
        state = replace(state, replans=state.replans + 1)
        return await self._replan(state, f"replan.{state.replans}")

    def known_replan(self, state: PlanState) -> PlanState | None:
        state = replace(state, replans=state.replans + 1)
        for number in reversed(range(REPAIR_ROUNDS + 1)):
            known = self._ctx.known_result(f"replan.{state.replans}.{number}")
            if known is None or known.failed:
                continue
            before = convert(dict[str, StepState], known.details.get("states", {}))
            return self._merge(replace(state, states=before), known.text)[0]
        return None

    async def _replan(self, state: PlanState, key: str, feedback: str = "") -> PlanState | None:
        request = replan_request(state, self._tools, feedback)
        states = {name: plain(each) for name, each in state.states.items()}
        for number in range(REPAIR_ROUNDS + 1):
            try:
                text = await self._ask(f"{key}.{number}", request, states)
            except ToolError:
                return None
            merged, problems = self._merge(state, text)
            if merged is not None:
                return merged
            request = with_problems(replan_request(state, self._tools, feedback), text, problems)
        return None

    def _merge(self, state: PlanState, text: str) -> tuple[PlanState | None, tuple[Problem, ...]]:
        try:
            plan: Plan = merge_replan(state, text)
        except PlanUnreadable as error:
            return None, (Problem(message=str(error)),)
        checked = check_plan(plan, self._tools, self._settings, state.finished)
        if checked.problems:
            return None, checked.problems
        return replace(state.with_plan(checked.plan), warnings=checked.warnings), ()

    async def repair(self, step: ExecutionStep, error: str, attempt: int) -> JsonObject | None:
        try:
            text = await self._ask(f"repair.{step.step_id}.{attempt}", repair_request(step, error))
        except ToolError:
            return None
        return read_parameters(text)

    async def decide_unknown(self, step: ExecutionStep, attempt: int) -> str:
        call = encode([step.tool_name, step.parameters]).decode()[:200]
        question = (
            f"Step {step.step_id} ({call}) was interrupted, and nobody knows whether it ran. "
            "What should happen?"
        )
        choices = [AGAIN, DONE, STOP]
        answer = await self.ask_person(question, choices, f"unknown.{step.step_id}.{attempt}")
        if answer is None:
            return ""
        return {AGAIN: "again", DONE: "done"}.get(answer, "stop")

    async def ask_person(self, question: str, choices: list[str], key: str) -> str | None:
        """Return the answer; None if nobody answered."""
        given: JsonObject = {"question": question, "choices": choices}
        result = await self._ctx.call_tool(self._ask_user, given, key=key)
        return None if result.failed else result.text

    async def _ask(self, key: str, request: str, states: JsonObject | None = None) -> str:
        given: JsonObject = {"request": request, "states": states or {}}
        result = await self._ctx.call_tool(self._ask_model, given, key=key)
        if result.failed:
            raise ToolError(result.text)
        return result.text
