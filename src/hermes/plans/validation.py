"""Checks a plan before anything runs, and completes it: dependencies that references imply."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.core.prompt import ToolSpec
from hermes.plans.conditions import Condition, ConditionError
from hermes.plans.model import ExecutionStep, Plan, PlanSettings, Problem, Risk
from hermes.plans.references import has_reference, names_in

MAP = "map"
# What `map` gives to its step.
ITEM_NAMES = frozenset(("item", "index"))
_STEP_ID = re.compile(r"[a-z0-9_]{1,32}")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
_RISKS: tuple[Risk, ...] = ("read", "write", "external")


class PlanTool(Value):
    """A tool that steps can call."""

    spec: ToolSpec
    risk: Risk = "external"
    # It may run again after a crash or a transient failure.
    repeats: bool = False


class CheckedPlan(Value):
    """The result of a check: a plan that can run if there are no problems."""

    plan: Plan
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def check_plan(
    plan: Plan,
    tools: Mapping[str, PlanTool],
    settings: PlanSettings,
    finished: Iterable[str] = (),
) -> CheckedPlan:
    """Check a plan. Steps in `finished` are done and not checked again."""
    done = frozenset(finished)
    problems = list(_check_ids(plan, settings))
    if problems:
        return CheckedPlan(plan=plan, problems=tuple(problems))
    warnings: list[str] = []
    steps = []
    for step in plan.steps:
        if step.step_id in done:
            steps.append(step)
            continue
        problems += _check_step(step, tools)
        steps.append(_add_dependencies(step, plan, warnings))
    plan = replace(plan, steps=tuple(steps))
    problems += _check_dependencies(plan)
    if not problems:
        warnings += _find_duplicates(plan, done)
    return CheckedPlan(plan=plan, problems=tuple(problems), warnings=tuple(warnings))


def _check_ids(plan: Plan, settings: PlanSettings) -> Iterator[Problem]:
    if not 1 <= len(plan.steps) <= settings.max_steps:
        count = f"The plan has {len(plan.steps)} steps"
        yield Problem(message=f"{count}; it must have 1 to {settings.max_steps}.")
    seen: set[str] = set()
    for step in plan.steps:
        if not _STEP_ID.fullmatch(step.step_id) or step.step_id in ITEM_NAMES:
            message = "A step id has 1 to 32 of a-z, 0-9 and _, and is not item or index."
            yield Problem(step_id=step.step_id, field="step_id", message=message)
        if step.step_id in seen:
            yield Problem(step_id=step.step_id, field="step_id", message="This id is used twice.")
        seen.add(step.step_id)


def _check_step(step: ExecutionStep, tools: Mapping[str, PlanTool]) -> Iterator[Problem]:
    id = step.step_id
    if step.tool_name == MAP:
        yield from _check_map(step, tools)
    else:
        yield from _check_call(id, step.tool_name, step.parameters, tools)
    if step.condition:
        try:
            Condition(step.condition)
        except ConditionError as error:
            yield Problem(step_id=id, field="condition", message=str(error))
    if step.retries is not None and step.retries < 0:
        yield Problem(step_id=id, field="retries", message="retries must not be negative.")
    if step.timeout is not None and step.timeout <= 0:
        yield Problem(step_id=id, field="timeout", message="timeout must be more than 0 seconds.")


def _check_map(step: ExecutionStep, tools: Mapping[str, PlanTool]) -> Iterator[Problem]:
    inner = step.parameters.get("step")
    if not isinstance(step.parameters.get("over"), str | list):
        message = "`over` must be a reference to a list, or a list."
        yield Problem(step_id=step.step_id, field="over", message=message)
    if not isinstance(inner, dict) or not isinstance(inner.get("tool_name"), str):
        message = "`step` must be an object with tool_name and parameters."
        yield Problem(step_id=step.step_id, field="step", message=message)
        return
    if inner["tool_name"] == MAP:
        message = "A map cannot contain another map."
        yield Problem(step_id=step.step_id, field="step", message=message)
        return
    given = inner.get("parameters") or {}
    yield from _check_call(step.step_id, inner["tool_name"], given, tools)


def _check_call(
    step_id: str, name: str, given: JsonObject, tools: Mapping[str, PlanTool]
) -> Iterator[Problem]:
    tool = tools.get(name)
    if tool is None:
        near = difflib.get_close_matches(name, [*tools, MAP], n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(near)}?" if near else f" There are: {', '.join(tools)}."
        message = f"Plans cannot use a tool named {name!r}.{hint}"
        yield Problem(step_id=step_id, field="tool_name", message=message)
        return
    yield from (replace(problem, step_id=step_id) for problem in check_parameters(given, tool.spec))


def check_parameters(given: JsonObject, spec: ToolSpec) -> Iterator[Problem]:
    """Check parameters against the schema of a tool. A reference fits everywhere."""
    properties: JsonObject = spec.parameters.get("properties") or {}
    for name in spec.parameters.get("required") or ():
        if given.get(name) is None:
            yield Problem(field=name, message=f"{spec.name} needs the parameter {name!r}.")
    for name, value in given.items():
        if name not in properties:
            there = ", ".join(properties)
            message = f"{spec.name} has no parameter {name!r}; it has: {there}."
            yield Problem(field=name, message=message)
        elif not has_reference(value) and not fits_schema(value, properties[name]):
            wanted = encode(properties[name]).decode()[:200]
            yield Problem(field=name, message=f"{name!r} does not fit its schema {wanted}.")


def fits_schema(value: JsonValue, schema: JsonObject) -> bool:
    """Whether a value has the type of a schema; only types, choices and lists are compared."""
    if value is None:
        return True
    if isinstance(options := schema.get("anyOf") or schema.get("oneOf"), list):
        return any(fits_schema(value, option) for option in options)
    if isinstance(choices := schema.get("enum"), list):
        return value in choices
    kinds = schema.get("type")
    if kinds is None:
        return True
    names = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool) and "boolean" not in names:
        return False
    if not isinstance(value, tuple(kind for name in names for kind in _TYPES.get(name, (object,)))):
        return False
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return all(has_reference(each) or fits_schema(each, items) for each in value)
    return True


def _add_dependencies(step: ExecutionStep, plan: Plan, warnings: list[str]) -> ExecutionStep:
    """Return the step with the dependencies that its references imply."""
    used = dict.fromkeys((*names_in(step.parameters), *names_in(step.condition)))
    known = plan.by_id
    missing = [
        name
        for name in used
        if name not in step.depends_on and name in known and name != step.step_id
    ]
    if not missing:
        return step
    warnings.append(f"{step.step_id} uses {', '.join(missing)}; the dependency was added.")
    return replace(step, depends_on=(*step.depends_on, *missing))


def _check_dependencies(plan: Plan) -> Iterator[Problem]:
    known = plan.by_id
    for step in plan.steps:
        for name in step.depends_on:
            if name == step.step_id or name not in known:
                why = "itself" if name == step.step_id else f"{name!r}, which does not exist"
                message = f"The step depends on {why}."
                yield Problem(step_id=step.step_id, field="depends_on", message=message)
        allowed = {*known, *(ITEM_NAMES if step.tool_name == MAP else ())} - {step.step_id}
        for name in dict.fromkeys((*names_in(step.parameters), *names_in(step.condition))):
            if name not in allowed:
                message = f"${{{name}}} does not name another step."
                yield Problem(step_id=step.step_id, field="parameters", message=message)
    sorter = TopologicalSorter({step.step_id: step.depends_on for step in plan.steps})
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        yield Problem(field="depends_on", message=f"The steps wait for each other: {cycle}.")


def _find_duplicates(plan: Plan, done: frozenset[str]) -> Iterator[str]:
    seen: dict[bytes, str] = {}
    for step in plan.steps:
        if step.step_id in done:
            continue
        key = encode([step.tool_name, step.parameters])
        if key in seen:
            yield f"{step.step_id} makes the same call as {seen[key]}."
        seen.setdefault(key, step.step_id)


def risk_of(step: ExecutionStep, tools: Mapping[str, PlanTool]) -> Risk:
    """Return the risk of a step: that of its tool, or more if the plan declares more."""
    name = step.tool_name
    if name == MAP and isinstance(inner := step.parameters.get("step"), dict):
        name = str(inner.get("tool_name"))
    own = tools[name].risk if name in tools else "external"
    return max(own, step.risk or "read", key=_RISKS.index)


def resource_of(step: ExecutionStep, parameters: JsonObject) -> str:
    """Return the resource that only one step at a time may use; "" for none."""
    match step.tool_name:
        case "write_file" | "patch":
            return f"file:{parameters.get('path', '')}"
        case "terminal" | "process" | "execute_code":
            return "shell"
        case "memory" | "todo" | "skill_manage" as name:
            return name
        case name if name.startswith("browser_"):
            return "browser"
        case _:
            return ""
