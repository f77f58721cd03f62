"""Plans are checked before anything runs."""

from __future__ import annotations

import pytest

from hermes.codec.values import JsonObject
from hermes.core.prompt import ToolSpec
from hermes.plans.model import ExecutionStep, Plan, PlanSettings
from hermes.plans.planner import PlanUnreadable, first_json, read_plan
from hermes.plans.validation import CheckedPlan, PlanTool, check_plan


def _tool(name: str, risk: str = "read", **properties: str) -> PlanTool:
    schema: JsonObject = {
        "type": "object",
        "properties": {key: {"type": kind.rstrip("?")} for key, kind in properties.items()},
        "required": [key for key, kind in properties.items() if not kind.endswith("?")],
    }
    spec = ToolSpec(name=name, description=f"{name}.", parameters=schema)
    return PlanTool(spec=spec, risk=risk, repeats=risk == "read")  # type: ignore[arg-type]


TOOLS = {
    tool.spec.name: tool
    for tool in (
        _tool("read_file", path="string", limit="integer?"),
        _tool("write_file", "write", path="string", content="string"),
        _tool("llm", prompt="string"),
    )
}


def check(*steps: JsonObject, max_steps: int = 30) -> CheckedPlan:
    made = tuple(
        ExecutionStep(**{"step_id": f"s{n}", "tool_name": "llm", **step})
        for n, step in enumerate(steps, 1)
    )
    return check_plan(Plan(goal="g", steps=made), TOOLS, PlanSettings(max_steps=max_steps))


def words(checked: CheckedPlan) -> str:
    return " ".join(f"{each.step_id} {each.field} {each.message}" for each in checked.problems)


P = {"prompt": "x"}


def test_a_good_plan_gets_the_dependencies_of_its_references() -> None:
    checked = check({"parameters": P}, {"parameters": {"prompt": "about ${s1}"}})
    assert checked.problems == ()
    assert checked.plan.steps[1].depends_on == ("s1",)
    assert checked.warnings == ("s2 uses s1; the dependency was added.",)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "1 to 30"),
        ([{"parameters": P}] * 31, "1 to 30"),
        ([{"step_id": "S 1", "parameters": P}], "A step id has"),
        ([{"step_id": "item", "parameters": P}], "A step id has"),
        ([{"step_id": "a", "parameters": P}, {"step_id": "a", "parameters": P}], "used twice"),
        ([{"tool_name": "red_file", "parameters": {"path": "x"}}], "Did you mean read_file"),
        ([{"tool_name": "read_file"}], "needs the parameter 'path'"),
        ([{"parameters": {**P, "x": 1}}], "no parameter 'x'"),
        ([{"tool_name": "read_file", "parameters": {"path": 3}}], "does not fit"),
        ([{"tool_name": "read_file", "parameters": {"path": "a", "limit": True}}], "does not fit"),
        ([{"parameters": P, "depends_on": ("s9",)}], "does not exist"),
        ([{"parameters": P, "depends_on": ("s1",)}], "itself"),
        ([{"parameters": {"prompt": "${s7}"}}], "does not name another step"),
        ([{"parameters": {"prompt": "${item}"}}], "does not name another step"),
        (
            [{"parameters": {"prompt": "${s2}"}}, {"parameters": {"prompt": "${s1}"}}],
            "The steps wait for each other: s1 -> s2 -> s1",
        ),
        ([{"parameters": P, "condition": "__import__('os')"}], "is not allowed"),
        ([{"parameters": P, "timeout": 0}], "more than 0"),
        ([{"tool_name": "map", "parameters": {"over": 1, "step": {}}}], "`over` must be"),
        (
            [{"tool_name": "map", "parameters": {"over": [1], "step": {"tool_name": "map"}}}],
            "another map",
        ),
    ],
)
def test_a_plan_that_cannot_run_is_refused(steps: list[JsonObject], message: str) -> None:
    assert message in words(check(*steps))


def test_a_reference_fits_any_type_and_a_map_knows_its_item() -> None:
    limit = {"tool_name": "read_file", "parameters": {"path": "a", "limit": "${s1.n}"}}
    step = {"tool_name": "read_file", "parameters": {"path": "${item}"}}
    mapped = {"tool_name": "map", "parameters": {"over": "${s1.all}", "step": step}}
    assert check({"parameters": P}, limit, mapped).problems == ()


def test_the_same_call_twice_is_a_warning() -> None:
    assert check({"parameters": P}, {"parameters": P}).warnings == (
        "s2 makes the same call as s1.",
    )


def test_a_plan_is_found_in_the_words_around_it() -> None:
    text = 'Sure {not json}:\n```json\n{"steps": [{"step_id": "a", "tool_name": "llm"}]}\n```'
    assert read_plan(text, "goal").steps[0].step_id == "a"
    assert read_plan(text, "goal").goal == "goal"
    with pytest.raises(PlanUnreadable):
        first_json("no plan here")
    with pytest.raises(PlanUnreadable):
        read_plan('{"steps": [{"id": 1}]}', "goal")
