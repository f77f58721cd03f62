"""Makes the calls of one step: one, or one per item for `map`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import Failure, Text, ToolResult
from hermes.plans.model import ExecutionStep, PlanSettings
from hermes.plans.references import StepResult, resolve, walk
from hermes.plans.validation import MAP, PlanTool

MOST_ITEMS = 10

# Calls a tool with these parameters as an inner call of this key.
CallStep = Callable[[str, JsonObject, str], Awaitable[ToolResult]]
Lookup = Callable[[str, str], JsonValue]


class StepFailure(Exception):
    """A step failed; `why` says in which way, if that is known."""

    def __init__(self, text: str, why: Failure | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.why = why


async def run_step(
    step: ExecutionStep,
    parameters: JsonObject,
    key: str,
    call: CallStep,
    lookup: Lookup,
    settings: PlanSettings,
    tools: Mapping[str, PlanTool],
) -> ToolResult:
    """Return the result of the step; raise StepFailure. `parameters` are resolved, except those of
    `map`."""
    if step.tool_name != MAP:
        return await _call(step.tool_name, parameters, key, call)
    return await _map(step, parameters, key, call, lookup, settings, tools)


async def _call(name: str, parameters: JsonObject, key: str, call: CallStep) -> ToolResult:
    result = await call(name, parameters, key)
    if result.failed:
        raise StepFailure(result.text, result.failure)
    return result


async def _map(
    step: ExecutionStep,
    parameters: JsonObject,
    key: str,
    call: CallStep,
    lookup: Lookup,
    settings: PlanSettings,
    tools: Mapping[str, PlanTool],
) -> ToolResult:
    """Run the inner step for each item; items run in parallel if the tool only reads."""
    items = resolve(parameters.get("over"), lookup)
    inner: JsonObject = parameters["step"]
    if not isinstance(items, list):
        raise StepFailure("`over` of a map must be a list.", "invalid")
    most = parameters.get("max") or MOST_ITEMS
    name = str(inner["tool_name"])
    at_once = settings.max_parallel if tools[name].risk == "read" else 1
    slots = asyncio.Semaphore(at_once)

    async def run(number: int, item: JsonValue) -> ToolResult:
        def look(wanted: str, path: str) -> JsonValue:
            if wanted == "item":
                return walk(item, path)
            return number if wanted == "index" else lookup(wanted, path)

        async with slots:
            given = resolve(inner.get("parameters") or {}, look)
            assert isinstance(given, dict)
            return await _call(name, given, f"{key}.{number}", call)

    async with asyncio.TaskGroup() as group:
        made = [group.create_task(_kept(run(n, each))) for n, each in enumerate(items[:most])]
    results = [task.result() for task in made]
    failed = [each for each in results if isinstance(each, StepFailure)]
    if failed:
        raise failed[0]
    found = [each for each in results if isinstance(each, ToolResult)]
    values = [StepResult(each.text, each.details).value for each in found]
    text = encode(values).decode()
    return ToolResult(call_id=key, name=MAP, parts=(Text(text=text),))


async def _kept(work: Awaitable[ToolResult]) -> ToolResult | StepFailure:
    """Return a failure instead of raising it, so that the other items go on."""
    try:
        return await work
    except StepFailure as failure:
        return failure
