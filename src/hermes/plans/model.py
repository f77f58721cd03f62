"""Plans as values: steps with dependencies, and how far each step is."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import JsonObject, JsonValue, Value, replace

OnFailure = Literal["", "abort", "skip", "continue", "replan"]
Risk = Literal["", "read", "write", "external"]
StepStatus = Literal["pending", "running", "done", "failed", "skipped", "cancelled", "unknown"]
PlanStatus = Literal["draft", "running", "completed", "partial", "failed", "cancelled"]
# A step in one of these does not run any more.
ENDED = frozenset(("done", "failed", "skipped", "cancelled", "unknown"))


class ExecutionStep(Value):
    """One tool call of a plan."""

    step_id: str
    tool_name: str
    parameters: JsonObject = {}
    depends_on: tuple[str, ...] = ()
    title: str = ""
    # What happens when it fails for good; "" replans if other steps need it, else skips.
    on_failure: OnFailure = ""
    # How often it is tried again after a transient failure; None uses the settings.
    retries: int | None = None
    # In seconds; None uses the settings.
    timeout: float | None = None
    # The step is skipped unless this expression is true.
    condition: str | None = None
    # The tool decides; a plan can only declare more risk.
    risk: Risk = ""
    # It may run beside other steps that change something.
    parallel_safe: bool = False


class Plan(Value):
    goal: str
    steps: tuple[ExecutionStep, ...]
    plan_id: str = ""
    # Counts revisions and replans.
    version: int = 1

    @property
    def by_id(self) -> dict[str, ExecutionStep]:
        return {step.step_id: step for step in self.steps}

    def dependants_of(self, step_id: str) -> list[str]:
        return [step.step_id for step in self.steps if step_id in step.depends_on]


class StepState(Value):
    """How far a step is."""

    status: StepStatus = "pending"
    attempts: int = 0
    seconds: float = 0.0
    error: str = ""
    # The text of the result, or its beginning if `result_path` has the whole text.
    text: str = ""
    details: JsonObject = {}
    result_path: str = ""
    # The version of the plan that added the step: step ids may be used again.
    version: int = 1


class PlanState(Value):
    """A plan and the state of its steps."""

    plan: Plan
    states: dict[str, StepState] = {}
    status: PlanStatus = "draft"
    replans: int = 0
    warnings: tuple[str, ...] = ()

    def state(self, step_id: str) -> StepState:
        return self.states.get(step_id) or StepState(version=self.plan.version)

    def with_step(self, step_id: str, state: StepState) -> PlanState:
        return replace(self, states={**self.states, step_id: state})

    def with_plan(self, plan: Plan) -> PlanState:
        """The state after a replan: finished steps stay, the others begin anew."""
        kept = {
            name: state
            for name, state in self.states.items()
            if state.status in ("done", "skipped") and name in plan.by_id
        }
        new = {
            step.step_id: StepState(version=plan.version)
            for step in plan.steps
            if step.step_id not in kept
        }
        return replace(self, plan=plan, states={**kept, **new})

    @property
    def finished(self) -> list[str]:
        """The steps that a replan keeps."""
        return [name for name, state in self.states.items() if state.status in ("done", "skipped")]

    @property
    def todos(self) -> list[JsonValue]:
        """The steps in the form of a task list, which every surface can show."""
        return [self._todo(step) for step in self.plan.steps]

    def _todo(self, step: ExecutionStep) -> JsonObject:
        state = self.state(step.step_id)
        status = {"pending": "pending", "running": "in_progress", "done": "completed"}
        mark = "" if state.status in status else f" ({state.status})"
        return {
            "id": step.step_id,
            "content": f"{step.title or step.tool_name}{mark}",
            "status": status.get(state.status, "cancelled"),
        }


class Problem(Value):
    """Why a plan cannot run."""

    message: str
    step_id: str = ""
    field: str = ""


class PlanSettings(Value):
    """The limits of plans."""

    max_steps: int = 30
    max_parallel: int = 4
    step_timeout: float = 300
    max_retries: int = 2
    max_replans: int = 3
    confirm: Annotated[str, "risky, always or never"] = "risky"
