"""The memory tool and the prompts that ask the model to use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.core.effects import Effect, Remember
from hermes.core.errors import ToolError
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.memory.entries import (
    Action,
    ChangeSource,
    MemoryRefusal,
    Operation,
    Target,
    entry_text,
    usage_text,
)
from hermes.memory.memories import Memories

REVIEW = (
    "Review this conversation. Is there anything about the user, their preferences, corrections or "
    "this environment that later sessions should know and memory lacks or has wrong? Save it with "
    "the memory tool: short statements, no task progress, no temporary failures. If there is "
    "nothing, say “nothing to save” and stop."
)
FLUSH = (
    "This conversation is about to be compacted. Save durable facts that would be lost with the "
    "memory tool: preferences, corrections, the environment. Nothing else; if there is nothing, "
    "say so."
)


MOST_FAILURES = 3
CLOSED = "Memory is not available in this session."
OFF = "Memory “{}” is disabled in the settings."
ENOUGH = "Memory changes failed repeatedly in this turn. Stop trying and answer the user."
LATER = "New sessions see it; this session keeps its initial memory."
WAITS = (
    "Not saved yet ({}): it waits for approval by `hermes memory accept c{}` or "
    "`hermes memory reject c{}`. Say so; do not say that it was saved."
)


class CallFacts(Value):
    """What the journal knows about a call of the memory tool."""

    source: ChangeSource
    # The idempotency key.
    key: str
    # Why the call must wait for a person, or "".
    held: str = ""


DescribeCall = Callable[[str], Awaitable[CallFacts]]


class MemoryToolService:
    """State of the memory tool in one session. `describe_call` returns the source of a call;
    `on_change` is called with applied changes."""

    def __init__(
        self,
        memories: Memories | None = None,
        describe_call: DescribeCall | None = None,
        *,
        targets: Sequence[Target] = (),
        on_change: Callable[[Target, Sequence[Operation]], None] = lambda *_: None,
    ) -> None:
        self.memories = memories
        self.describe_call = describe_call
        self.targets = targets
        self.on_change = on_change
        self.failures: Counter[str] = Counter()


def _memory_effects(_context: PathContext, arguments: JsonObject) -> list[Effect]:
    return [
        Remember(target=arguments["target"], action=each.action, text=each.content or each.old_text)
        for each in operations_of(arguments)
    ]


@tool(
    effects=_memory_effects,
    repeat="safe",
    toolset="memory",
    display=ToolDisplay(icon="🧠", verb="memory"),
)
async def memory(
    ctx: ToolContext,
    target: Annotated[Target, "user: facts about the user"],
    action: Action | None = None,
    content: str = "",
    old_text: Annotated[str, "Part of the old entry"] = "",
    operations: Annotated[tuple[Operation, ...], "Several changes, all or none"] = (),
) -> ToolOutput:
    """Save short facts for later sessions: preferences and corrections of the user, environment,
    conventions, lessons; as statements. No trivia, task progress or procedures (use skills)."""
    arguments = {
        "action": action,
        "content": content,
        "old_text": old_text,
        "operations": operations,
    }
    parsed = operations_of(arguments)
    return await execute(ctx.service(MemoryToolService), ctx.call_id, target, parsed)


async def execute(
    service: MemoryToolService, call_id: str, target: Target, operations: Sequence[Operation]
) -> ToolOutput:
    """Execute one call. Raises ToolError when memory is unavailable or the target disabled."""
    if service.memories is None or service.describe_call is None:
        raise ToolError(CLOSED)
    if target not in service.targets:
        raise ToolError(OFF.format(target))
    call = await service.describe_call(call_id)
    if service.failures[call.source.turn_id] >= MOST_FAILURES:
        return _answer({"success": False, "done": True, "error": ENOUGH}, failed=True)
    outcome = await service.memories.change(
        target, operations, source=call.source, key=call.key, held=call.held
    )
    entries = [each for each in await service.memories.entries() if each.target == target]
    limit = service.memories.limits.of(target)
    usage = usage_text([entry.text for entry in entries], limit)
    if isinstance(outcome, MemoryRefusal):
        service.failures[call.source.turn_id] += outcome.kind in ("limit", "match", "conflict")
        prefix = f"Operation {outcome.number}: " if outcome.number else ""
        answer: JsonObject = {"success": False, "error": prefix + outcome.error}
        if outcome.matches:
            answer["matches"] = outcome.matches
        elif outcome.kind in ("limit", "match"):
            answer["current_entries"] = [entry_text(entry) for entry in entries]
        if outcome.kind == "limit":
            answer["usage"] = usage
        return _answer(answer, failed=True)
    if outcome.changes and not outcome.held and not outcome.repeated:
        service.on_change(target, operations)
    first = outcome.changes[0] if outcome.changes else 0
    answer = {
        "success": True,
        "done": True,
        "target": target,
        "usage": usage,
        "entry_count": len(entries),
        "message": outcome.message,
        "note": WAITS.format(outcome.held, first, first) if outcome.held else LATER,
    }
    return _answer(answer, details={"changes": list(outcome.changes), "held": outcome.held})


def operations_of(arguments: JsonObject) -> tuple[Operation, ...]:
    """Return the operations in decoded arguments. Raises ToolError."""
    operations: tuple[Operation, ...] = arguments["operations"]
    if operations:
        return operations
    if not arguments["action"]:
        raise ToolError("Give action or operations.")
    single = {name: arguments[name] for name in ("action", "content", "old_text")}
    return (Operation(**single),)


def _answer(
    answer: JsonObject, *, details: JsonObject | None = None, failed: bool = False
) -> ToolOutput:
    return ToolOutput.text(encode(answer).decode(), details=details, failed=failed)
