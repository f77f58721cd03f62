"""The tool plan: writes, checks and runs plans. The newest result holds the state of the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Literal

from hermes.codec.json import DecodeError, convert, encode, plain
from hermes.codec.values import JsonObject, replace
from hermes.core.errors import HermesError, NotFound, ProviderError, ToolError
from hermes.core.messages import ToolResult
from hermes.core.tools import Tool, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.plans.model import Plan, PlanSettings, PlanState, Problem, StepState
from hermes.plans.planner import PlanUnreadable, first_json, steps_from
from hermes.plans.progress import PlanProgress
from hermes.plans.recovery import Planner
from hermes.plans.rendering import render_problems, render_results, render_state
from hermes.plans.scheduler import PlanRun
from hermes.plans.validation import CheckedPlan, PlanTool, check_plan, fits_schema, risk_of

# Longer results are in a file, and the state holds their beginning.
MOST_KEPT_CHARS = 20_000
MAX_EDITS = 3
RUN, CANCEL = "run", "cancel"
Action = Literal["create", "validate", "run", "status", "revise", "cancel"]
# The kind of request ("plan", "llm") and its text.
AskModel = Callable[[str, str], Awaitable[str]]


class PlanningService:
    """What plans of one session use: tools, limits, a model, and what the person said lately."""

    def __init__(
        self,
        tools: Callable[[], Iterable[Tool]] = tuple,
        settings: PlanSettings | None = None,
        ask_model: AskModel | None = None,
        facts: Callable[[], str] = str,
    ) -> None:
        self.settings = settings or PlanSettings()
        self.ask_model = ask_model
        self.facts = facts
        self._tools = tools

    def tools(self) -> dict[str, PlanTool]:
        found = {each.name: _plan_tool(each) for each in (llm, ask_user)}
        return found | {each.name: _plan_tool(each) for each in self._tools()}


def _plan_tool(each: Tool) -> PlanTool:
    kind = getattr(each, "kind", "other")
    risk: Literal["read", "write", "external"] = "external"
    if kind in ("read", "search", "fetch", "think"):
        risk = "read"
    elif kind == "edit":
        risk = "write"
    return PlanTool(spec=each.spec, risk=risk, repeats=each.repeat == "safe")


async def _ask(ctx: ToolContext, kind: str, request: str) -> str:
    model = ctx.service(PlanningService).ask_model
    if model is None:
        raise ToolError("No model is available for plans.")
    try:
        return await model(kind, request)
    except HermesError as error:
        retryable = isinstance(error, ProviderError) and error.retryable
        raise ToolError(str(error), transient=retryable) from error


@tool(repeat="safe", kind="think")
async def llm(ctx: ToolContext, prompt: str, schema: JsonObject | None = None) -> ToolOutput:
    """One completion of a model without tools; JSON if there is a schema."""
    if schema is None:
        return ToolOutput.text(await _ask(ctx, "llm", prompt))
    wanted = f"{prompt}\n\nAnswer with one JSON object of this schema: {encode(schema).decode()}"
    try:
        found = first_json(await _ask(ctx, "llm", wanted))
    except PlanUnreadable as error:
        raise ToolError(str(error)) from error
    properties: JsonObject = schema.get("properties") or {}
    missing = [name for name in schema.get("required") or () if name not in found]
    wrong = [n for n in properties if n in found and not fits_schema(found[n], properties[n])]
    if missing or wrong:
        raise ToolError(f"The answer does not fit the schema: {', '.join(missing + wrong)}.")
    return ToolOutput.text(encode(found).decode())


@tool(repeat="safe", interactive=True, kind="think")
async def ask_user(ctx: ToolContext, question: str, choices: tuple[str, ...] = ()) -> ToolOutput:
    """Ask the person."""
    answer = await ctx.ask(question, choices)
    if answer is None:
        raise ToolError("Nobody answered.")
    return ToolOutput.text(answer)


@tool(repeat="safe", kind="think")
async def write_plan(
    ctx: ToolContext, request: str, states: dict[str, JsonObject] | None = None
) -> ToolOutput:
    """Ask the planning model; the details keep the states of the steps at that time."""
    text = await _ask(ctx, "plan", request)
    return ToolOutput.text(text, details={"states": states or {}})


@tool(
    repeat="safe",
    interactive=True,
    stateful=True,
    toolset="planning",
    kind="other",
    display=ToolDisplay(icon="🗺", verb="plan", detail="{goal}", title="plan: {goal}"),
    private=(llm, ask_user, write_plan),
)
async def plan(
    ctx: ToolContext,
    action: Action,
    goal: str = "",
    steps: Annotated[
        list[JsonObject] | None, "{step_id, tool_name, parameters, depends_on}; ${s1.x} refers"
    ] = None,
    plan_id: str = "",
    feedback: Annotated[str, "For revise"] = "",
    confirm: Literal["default", "skip"] = "default",
) -> ToolOutput:
    """Split work into dependent steps that run in parallel and recover. run with a goal writes and
    runs a plan."""
    session = PlanCall(ctx, confirm=confirm == "default")
    match action:
        case "create":
            return session.show(await session.create(goal, steps))
        case "validate":
            return session.validate(goal, steps)
        case "run":
            state = (
                await session.create(goal, steps) if goal or steps else await session.load(plan_id)
            )
            return await session.run(state)
        case "status":
            return session.show(await session.load(plan_id))
        case "revise":
            state = await session.load(plan_id)
            return session.show(await session.planner.revise(state, feedback, "revise"))
        case "cancel":
            state = await session.load(plan_id)
            return session.show(replace(state, status="cancelled"))


class PlanCall:
    """One call of the tool."""

    def __init__(self, ctx: ToolContext, *, confirm: bool) -> None:
        self._ctx = ctx
        self._service = ctx.service(PlanningService)
        self._confirm = confirm
        self._settings = self._service.settings
        self._tools = self._service.tools()
        self.planner = Planner(
            ctx, self._tools, self._settings, ask_model=write_plan, ask_user=ask_user
        )

    async def create(self, goal: str, steps: list[JsonObject] | None) -> PlanState:
        if steps is not None:
            checked = self._check(goal, steps)
            if checked.problems:
                raise ToolError(render_problems(checked.problems))
        elif goal.strip():
            checked = await self.planner.draft(goal, self._service.facts())
        else:
            raise ToolError("A plan needs a goal or steps.")
        # The same for a call that runs again after a crash.
        mark = hashlib.sha256(f"{self._ctx.call_id} {goal}".encode()).hexdigest()[:8]
        found = replace(checked.plan, plan_id=f"plan_{mark}", goal=goal or checked.plan.goal)
        return PlanState(plan=found, warnings=checked.warnings)

    def validate(self, goal: str, steps: list[JsonObject] | None) -> ToolOutput:
        checked = self._check(goal, steps or [])
        if checked.problems:
            raise ToolError(render_problems(checked.problems))
        return ToolOutput.text("\n".join(("The plan is valid.", *checked.warnings)))

    def _check(self, goal: str, steps: list[JsonObject]) -> CheckedPlan:
        try:
            draft = Plan(goal=goal, steps=steps_from(steps))
        except PlanUnreadable as error:
            empty = Plan(goal=goal, steps=())
            return CheckedPlan(plan=empty, problems=(Problem(message=str(error)),))
        return check_plan(draft, self._tools, self._settings)

    async def load(self, plan_id: str) -> PlanState:
        """Return the newest plan of the session, with results that are in files."""
        stored = (self._ctx.latest(plan.name) or {}).get("plan")
        try:
            state = convert(PlanState, stored)
        except DecodeError as error:
            raise ToolError("This session has no plan; use create or run with a goal.") from error
        if plan_id not in ("", state.plan.plan_id):
            raise ToolError(f"The newest plan of this session is {state.plan.plan_id}.")
        for name, each in state.states.items():
            if each.result_path:
                try:
                    whole = await self._ctx.workspace.read_bytes(each.result_path)
                    full = replace(each, text=whole.decode("utf-8", "replace"))
                    state = state.with_step(name, full)
                except (ToolError, NotFound, OSError):
                    continue
        return state

    async def run(self, state: PlanState) -> ToolOutput:
        if self._confirm and self._needs_confirmation(state):
            confirmed = await self._ask_to_run(state)
            if confirmed is None:
                return self.show(state, "The plan was not run: nobody confirmed it.")
            state = confirmed
        progress = PlanProgress(self._ctx)
        run = PlanRun(
            self._without_failures(state),
            self._tools,
            self._settings,
            call=self._call_step,
            recovery=self.planner,
            stop=self._ctx.stop,
            on_change=progress.update,
        )
        try:
            ended = await run.run()
        finally:
            progress.end()
        return self._output(await self._move_to_files(ended), render_results(ended))

    def _without_failures(self, state: PlanState) -> PlanState:
        """A plan that runs again tries what failed, was cancelled or was skipped."""
        kept = {
            name: each
            for name, each in state.states.items()
            if each.status in ("done", "unknown") or (each.status == "skipped" and not each.error)
        }
        again = {
            name: StepState(attempts=each.attempts, version=each.version)
            for name, each in state.states.items()
            if name not in kept
        }
        return replace(state, states={**kept, **again})

    def _needs_confirmation(self, state: PlanState) -> bool:
        if self._settings.confirm == "never":
            return False
        left = (s for s in state.plan.steps if state.state(s.step_id).status != "done")
        return self._settings.confirm == "always" or any(
            risk_of(step, self._tools) != "read" for step in left
        )

    async def _ask_to_run(self, state: PlanState) -> PlanState | None:
        """Show the plan and ask; an answer in words changes the plan. None if it may not run."""
        for number in range(MAX_EDITS):
            question = f"{render_state(state)}\nRun this plan? You can also say what to change."
            answer = await self.planner.ask_person(question, [RUN, CANCEL], f"confirm.{number}")
            if answer == RUN:
                return state
            if answer is None or answer == CANCEL:
                return None
            state = await self.planner.revise(state, answer, f"edit.{number}")
        return None

    async def _call_step(self, name: str, parameters: JsonObject, key: str) -> ToolResult:
        own: Mapping[str, Tool] = plan.private
        return await self._ctx.call_tool(own.get(name, name), parameters, key=key)

    async def _move_to_files(self, state: PlanState) -> PlanState:
        for name, each in state.states.items():
            if len(each.text) > MOST_KEPT_CHARS:
                path = each.result_path or await self._ctx.workspace.scratch(
                    f"{state.plan.plan_id}-{name}.json", each.text.encode()
                )
                short = replace(each, text=each.text[:MOST_KEPT_CHARS], result_path=path)
                state = state.with_step(name, short)
        return state

    def show(self, state: PlanState, note: str = "") -> ToolOutput:
        return self._output(state, "\n".join(filter(None, (render_state(state), note))))

    def _output(self, state: PlanState, text: str) -> ToolOutput:
        details: JsonObject = {
            "plan": plain(state),
            "plan_id": state.plan.plan_id,
            "status": state.status,
            "todos": state.todos,
        }
        return ToolOutput.text(text, details=details)
