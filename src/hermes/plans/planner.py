"""Asks a model for plans: the prompts, and reading the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from hermes.codec.json import DecodeError, convert, encode, plain
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.plans.model import ExecutionStep, Plan, PlanState, Problem
from hermes.plans.validation import PlanTool

MAX_CATALOGUE = 40
MAX_FACTS_CHARS = 2_000
# Tools that many plans need, whatever the words of the goal are.
_CORE = ("llm", "ask_user", "read_file", "write_file", "search_files", "terminal")
_SHORT = 400

RULES = """\
You write execution plans. Answer with one JSON object and nothing else:
{"goal": "...", "steps": [{"step_id": "s1", "title": "...", "tool_name": "...", "parameters": {}, \
"depends_on": []}]}

Rules:
- Use only the tools in the list, one tool per step, and as few steps as possible.
- step_id: 1 to 32 of a-z, 0-9 and _.
- A step without depends_on starts at once; independent steps run in parallel.
- ${s1} is the result of step s1, ${s1.items[0].name} a part of it, ${s1.items[0:3].url} a list, \
${s1.x|none} has a default. A parameter that is exactly one reference keeps its type.
- `llm` makes one model call: {"prompt": "..."}; with "schema", its answer is JSON. `ask_user` \
asks the person: {"question": "...", "choices": []}. `map` runs a step for each item of a list: \
{"over": "${s1.items}", "step": {"tool_name": "...", "parameters": {"url": "${item.url}"}}, \
"max": 10}.
- Optional per step: "condition" ("${s1.count} > 0"), "on_failure" (abort, skip, continue, \
replan), "retries", "timeout" in seconds, "risk" (read, write, external).
- No step that only thinks.

Example with two parallel branches:
{"goal": "Compare a.txt and b.txt", "steps": [
{"step_id": "a", "tool_name": "read_file", "parameters": {"path": "a.txt"}, "depends_on": []},
{"step_id": "b", "tool_name": "read_file", "parameters": {"path": "b.txt"}, "depends_on": []},
{"step_id": "c", "tool_name": "llm", "parameters": {"prompt": "Compare:\\n${a}\\n---\\n${b}"}, \
"depends_on": ["a", "b"]}]}
"""
_REPLAN = """\
The plan below stopped. Keep the finished steps: do not list them again, refer to them by their \
ids. Answer with one JSON object {{"steps": [...]}} that replaces all unfinished steps and reaches \
the goal in another way.

Goal: {goal}

{states}

{why}"""
_REPAIR = """\
The parameters of this step cannot be used. Answer with one JSON object {{"parameters": {{...}}}}.

Step: {step}
Error: {error}"""


class PlanUnreadable(ValueError):
    """The answer of a model is not a plan."""


class _Answer(Value):
    steps: tuple[ExecutionStep, ...]
    goal: str = ""


def catalogue(goal: str, tools: Mapping[str, PlanTool]) -> str:
    """Describe the tools; of many, those that share words with the goal."""
    names = list(tools)
    if len(names) > MAX_CATALOGUE:
        words = set(re.findall(r"\w{3,}", goal.lower()))

        def rank(name: str) -> tuple[bool, int]:
            text = f"{name} {tools[name].spec.description}".lower()
            return name not in _CORE, -sum(word in text for word in words)

        names = sorted(names, key=rank)[:MAX_CATALOGUE]
    return "\n".join(_describe(tools[name]) for name in names)


def _describe(tool: PlanTool) -> str:
    purpose = tool.spec.description.partition(".")[0].replace("\n", " ")
    required = set(tool.spec.parameters.get("required") or ())
    properties: JsonObject = tool.spec.parameters.get("properties") or {}
    parameters = ", ".join(
        f"{name}: {schema.get('type', 'any') if isinstance(schema, dict) else 'any'}"
        f"{'' if name in required else ' (optional)'}"
        for name, schema in properties.items()
    )
    return f"- {tool.spec.name}({parameters}): {purpose}. Risk: {tool.risk}"


def draft_request(goal: str, facts: str, tools: Mapping[str, PlanTool]) -> str:
    known = f"\n\nKnown so far:\n{facts[-MAX_FACTS_CHARS:]}" if facts else ""
    return f"Goal: {goal}{known}\n\nTools:\n{catalogue(goal, tools)}"


def with_problems(request: str, answer: str, problems: Iterable[Problem]) -> str:
    """The request for another answer, with what was wrong with the last one."""
    found = "\n".join(
        f"- {' '.join(filter(None, (each.step_id, each.field)))}: {each.message}"
        for each in problems
    )
    return f"{request}\n\nYour last answer:\n{answer}\n\nIt cannot be used:\n{found}\nCorrect it."


def replan_request(state: PlanState, tools: Mapping[str, PlanTool], feedback: str = "") -> str:
    lines = []
    for step in state.plan.steps:
        at = state.state(step.step_id)
        shown = at.error if at.status == "failed" else at.text
        call = encode([step.tool_name, step.parameters]).decode()[:_SHORT]
        lines.append(f"{step.step_id} [{at.status}] {call}: {shown[:_SHORT]}".rstrip(": "))
    why = f"The person wants: {feedback}" if feedback else "A failed step has no other way yet."
    text = _REPLAN.format(goal=state.plan.goal, states="Steps:\n" + "\n".join(lines), why=why)
    return f"{text}\n\nTools:\n{catalogue(state.plan.goal, tools)}"


def repair_request(step: ExecutionStep, error: str) -> str:
    return _REPAIR.format(step=encode(plain(step)).decode(), error=error)


def read_plan(text: str, goal: str) -> Plan:
    """Read a plan from the answer of a model; raise PlanUnreadable."""
    answer = _read_answer(first_json(text))
    return Plan(goal=answer.goal or goal, steps=answer.steps)


def steps_from(steps: JsonValue) -> tuple[ExecutionStep, ...]:
    return _read_answer({"steps": steps}).steps


def read_parameters(text: str) -> JsonObject | None:
    try:
        found = first_json(text)
    except PlanUnreadable:
        return None
    parameters = found.get("parameters")
    return parameters if isinstance(parameters, dict) else None


def merge_replan(state: PlanState, text: str) -> Plan:
    """The plan with its finished steps and the new ones of the answer."""
    answer = _read_answer(first_json(text))
    kept = tuple(step for step in state.plan.steps if step.step_id in state.finished)
    return replace(state.plan, steps=(*kept, *answer.steps), version=state.plan.version + 1)


def _read_answer(found: JsonObject) -> _Answer:
    try:
        return convert(_Answer, found)
    except DecodeError as error:
        raise PlanUnreadable(f"The plan has another form than required: {error}") from error


def first_json(text: str) -> JsonObject:
    """Return the first JSON object in a text."""
    decoder = json.JSONDecoder()
    for found in re.finditer(r"\{", text):
        try:
            value, _ = decoder.raw_decode(text, found.start())
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    raise PlanUnreadable("The answer contains no JSON object.")
