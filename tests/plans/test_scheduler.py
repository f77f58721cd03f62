"""The scheduler against random graphs and failures, and its rules one by one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.core.messages import Failure, Text, ToolResult
from hermes.core.prompt import ToolSpec
from hermes.core.tool_calls import UNKNOWN_OUTCOME
from hermes.plans.model import ENDED, ExecutionStep, Plan, PlanSettings, PlanState, StepState
from hermes.plans.scheduler import PlanRun
from hermes.plans.validation import PlanTool

SPEC = ToolSpec(name="t", description="", parameters={})
TOOLS = {
    "read": PlanTool(spec=SPEC, risk="read", repeats=True),
    "write": PlanTool(spec=SPEC, risk="write"),
}


class World:
    """Plays tools and the planner. `fate` maps a key to a failure; "" succeeds."""

    def __init__(self, plan: Plan, settings: PlanSettings, fate: Callable[[str], str]) -> None:
        self.plan = plan
        self.settings = settings
        self.fate = fate
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []
        self.running: list[str] = []
        self.most = 0
        self.writing = 0
        self.problems: list[str] = []
        self.replans = 0
        self.new_plan: Callable[[PlanState], Plan | None] = lambda _state: None
        self.choice = "stop"
        self.run: PlanRun | None = None

    async def call(self, name: str, parameters: JsonObject, key: str) -> ToolResult:
        step_id = key.split(".")[0]
        assert self.run is not None
        state = self.run.state
        step = state.plan.by_id[step_id]
        if any(state.state(each).status not in ENDED for each in step.depends_on):
            self.problems.append(f"{step_id} started too early")
        self.calls[key] += 1
        self.order.append(step_id)
        self.running.append(step_id)
        self.most = max(self.most, len(self.running))
        self.writing += name == "write"
        if self.writing > 1:
            self.problems.append("two steps wrote at the same time")
        for _ in range(1 + len(step_id) % 3):
            await asyncio.sleep(0)
        self.writing -= name == "write"
        self.running.remove(step_id)
        failure = self.fate(key)
        text = failure or f'{{"of": "{step_id}", "n": {len(self.order)}}}'
        whys: dict[str, Failure] = {"timed out": "transient", UNKNOWN_OUTCOME: "unknown"}
        why = whys.get(failure)
        parts = (Text(text=text),)
        return ToolResult(call_id=key, name=name, parts=parts, failed=bool(failure), failure=why)

    async def repair(self, step: ExecutionStep, error: str, attempt: int) -> JsonObject | None:
        return None

    async def replan(self, state: PlanState) -> PlanState | None:
        self.replans += 1
        plan = self.new_plan(state)
        if plan is None:
            return None
        found = PlanState(
            plan=state.plan, states=state.states, status=state.status, replans=state.replans + 1
        )
        return found.with_plan(plan)

    def known_replan(self, state: PlanState) -> PlanState | None:
        return None

    async def decide_unknown(self, step: ExecutionStep, attempt: int) -> str:
        return self.choice

    async def play(self, state: PlanState | None = None) -> PlanState:
        async def no_sleep(_seconds: float) -> None:
            await asyncio.sleep(0)

        self.run = PlanRun(
            state or PlanState(plan=self.plan),
            TOOLS,
            self.settings,
            call=self.call,
            recovery=self,
            stop=asyncio.Event(),
            sleep=no_sleep,
        )
        async with asyncio.timeout(30):
            return await self.run.run()


def step(id: str, *after: str, tool: str = "read", **options: object) -> ExecutionStep:
    return ExecutionStep(step_id=id, tool_name=tool, depends_on=after, **options)  # type: ignore[arg-type]


def world(*steps: ExecutionStep, fate: Callable[[str], str] = lambda _: "", **limits: int) -> World:
    return World(Plan(goal="g", steps=steps), PlanSettings(**limits), fate)  # type: ignore[arg-type]


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, dict[str, str]]:
    count = draw(st.integers(1, 9))
    names = [f"s{n}" + "x" * (n % 3) for n in range(count)]
    steps, fates = [], {}
    for n, name in enumerate(names):
        after = draw(st.lists(st.sampled_from(names[:n]), unique=True, max_size=3)) if n else []
        action = draw(st.sampled_from(["", "abort", "skip", "continue", "replan"]))
        tool = draw(st.sampled_from(["read", "read", "write"]))
        condition = draw(st.sampled_from([None, None, "1 > 2", "1 < 2"]))
        steps.append(
            step(name, *after, tool=tool, on_failure=action, condition=condition, retries=1)
        )
        fates[name] = draw(st.sampled_from(["", "", "", "broken", "timed out"]))
    return Plan(goal="g", steps=tuple(draw(st.permutations(steps)))), fates


@given(plans(), st.integers(1, 4), st.integers(0, 2))
async def test_the_invariants_hold_for_any_graph(
    made: tuple[Plan, dict[str, str]], max_parallel: int, max_replans: int
) -> None:
    plan, fates = made
    settings = PlanSettings(max_parallel=max_parallel, max_replans=max_replans, max_retries=1)
    played = World(plan, settings, lambda key: fates[key.split(".")[0]])

    def retry_all(state: PlanState) -> Plan:
        return Plan(goal="g", steps=state.plan.steps, version=state.plan.version + 1)

    played.new_plan = retry_all
    ended = await played.play()
    assert played.problems == []
    assert played.most <= max_parallel
    assert max(played.calls.values(), default=0) <= 1
    assert sum(played.calls.values()) <= len(plan.steps) * 2 * (1 + max_replans)
    assert ended.status in ("completed", "partial", "failed")
    assert all(ended.state(each.step_id).status in ENDED for each in plan.steps)
    for each in plan.steps:
        if ended.state(each.step_id).status == "done":
            assert not fates[each.step_id]
    writes = [key for key in played.calls if plan.by_id[key.split(".")[0]].tool_name == "write"]
    assert all(key.endswith(".1") for key in writes)


async def test_the_middle_of_a_diamond_runs_in_parallel() -> None:
    played = world(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
    assert (await played.play()).status == "completed"
    assert played.order[0] == "a"
    assert played.order[-1] == "d"
    assert played.most == 2


async def test_a_transient_failure_is_tried_again() -> None:
    played = world(step("a"), fate=lambda key: "timed out" if key.endswith(".1") else "")
    ended = await played.play()
    assert ended.state("a").attempts == 2
    assert ended.status == "completed"


async def test_what_must_not_run_twice_is_not_tried_again() -> None:
    played = world(step("a", tool="write"), fate=lambda key: "timed out")
    assert (await played.play()).status == "failed"
    assert list(played.calls) == ["a.v1.1"]


async def test_a_replan_keeps_what_is_done() -> None:
    steps = (step("a"), step("b", "a"), step("c", "b"))
    played = world(*steps, fate=lambda key: "gone" if key.startswith("b.") else "")
    played.new_plan = lambda state: Plan(
        goal="g", steps=(steps[0], step("d", "a"), step("c", "d")), version=2
    )
    ended = await played.play()
    assert ended.status == "completed"
    assert ended.replans == 1
    assert played.order == ["a", "b", "d", "c"]


async def test_a_failed_step_that_may_be_missing_lets_others_continue() -> None:
    played = world(
        step("a", on_failure="continue"),
        step("b", "a"),
        step("c", on_failure="skip"),
        step("d", "c"),
        step("e", "c", condition="${c} == null"),
        fate=lambda key: "gone" if key[0] in "ac" else "",
    )
    ended = await played.play()
    found = {name: ended.state(name).status for name in "abcde"}
    assert found == {"a": "failed", "b": "done", "c": "failed", "d": "skipped", "e": "done"}
    assert ended.status == "partial"


async def test_an_abort_cancels_the_rest() -> None:
    played = world(
        step("a", on_failure="abort"),
        step("b", "a"),
        step("c", "a"),
        fate=lambda key: "gone" if key[0] == "a" else "",
    )
    ended = await played.play()
    assert ended.status == "failed"
    assert [ended.state(name).status for name in "abc"] == ["failed", "cancelled", "cancelled"]


async def test_a_condition_decides() -> None:
    played = world(step("a"), step("b", "a", condition="${a.n} > 5"), step("c", "b"))
    ended = await played.play()
    assert [ended.state(name).status for name in "abc"] == ["done", "skipped", "skipped"]
    assert ended.status == "completed"


async def test_an_unknown_outcome_is_a_question() -> None:
    fate = lambda key: UNKNOWN_OUTCOME if key == "a.v1.1" else ""  # noqa: E731
    for choice, status, calls in (
        ("again", "done", 2),
        ("done", "done", 1),
        ("stop", "unknown", 1),
    ):
        played = world(step("a", tool="write"), step("b", "a"), fate=fate)
        played.choice = choice
        ended = await played.play()
        assert ended.state("a").status == status
        assert sum(key.startswith("a.") for key in played.calls) == calls
        assert ended.state("b").status == ("cancelled" if choice == "stop" else "done")


async def test_done_steps_of_an_earlier_run_are_not_repeated() -> None:
    played = world(step("a"), step("b", "a"))
    done = StepState(status="done", attempts=1, text='{"x": 1}')
    ended = await played.play(PlanState(plan=played.plan, states={"a": done}))
    assert played.order == ["b"]
    assert ended.status == "completed"
