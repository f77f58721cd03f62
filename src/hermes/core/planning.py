"""Plans the calls of a reply: which tool, which arguments, which effects, and what may run in
parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, replace
from hermes.core.change_order import is_server_read, may_conflict
from hermes.core.effects import Allow, DeletePath, Effect, ReadPath, UseTool, WritePath
from hermes.core.errors import ToolError
from hermes.core.events import JudgedEffect
from hermes.core.messages import Failure, Text, ToolCall, ToolResult
from hermes.core.tools import Tool

if TYPE_CHECKING:
    from hermes.core.session_deps import Toolbox, TurnContext

TOOL_CALL = "tool_call"
# Marks the result of a call that the same reply already contains.
DUPLICATE = "duplicate"


class PlannedCall:
    """A call that can run. `ask` is a reason to ask a person even if the policy would not. Without
    declared effects, `is_reading` says that it probably changes nothing."""

    def __init__(
        self,
        call: ToolCall,
        tool: Tool,
        arguments: JsonObject,
        judged: tuple[JudgedEffect, ...],
        *,
        is_reading: bool = False,
    ) -> None:
        self.is_reading = is_reading and not judged
        self.call = call
        self.tool = tool
        self.arguments = arguments
        self.judged = judged
        self.ask = ""
        # A running tool makes it.
        self.is_inner = False

    @property
    def effects(self) -> tuple[Effect, ...]:
        return tuple(each.effect for each in self.judged)

    @property
    def as_effect(self) -> Effect:
        """The effect to show when a person is asked about the whole call."""
        if len(self.judged) == 1:
            return self.judged[0].effect
        return UseTool(name=self.tool.name, arguments=encode(self.call.arguments).decode())

    @property
    def needs_approval(self) -> bool:
        """Whether a person must be asked, or an effect is not simply allowed."""
        return bool(self.ask) or not all(isinstance(each.decision, Allow) for each in self.judged)

    @property
    def harmless(self) -> bool:
        """Whether all effects are known and none changes anything."""
        return bool(self.judged) and all(
            isinstance(each.decision, Allow) and each.decision.harmless for each in self.judged
        )


def plan_call(
    turn: TurnContext,
    call: ToolCall,
    seen: set[str],
    *,
    tool: Tool | None = None,
    also: frozenset[str] = frozenset(),
) -> PlannedCall | ToolResult:
    """A plan, or the result of a call that will not run. `seen` holds the calls of this reply so
    far: a repeated call runs, or is refused, once. `tool` is one that the session does not offer;
    `also` are sources of text in view."""
    call = unwrap_tool_call(call)
    found = None if call.broken else tool or find_tool(turn.toolbox, call.name)
    name = found.name if found is not None else call.name
    duplicate_key = f"{name}{call.broken}{sorted(call.arguments.items(), key=repr)!r}"
    if duplicate_key in seen:
        return ToolResult(
            call_id=call.id,
            name=call.name,
            parts=(Text(text="This reply already contains the same call; see its result."),),
            details={DUPLICATE: True},
        )
    seen.add(duplicate_key)
    if call.broken:
        return refuse_call(
            call, f"The arguments cannot be used: {call.broken} The call was not run."
        )
    if found is None:
        names = ", ".join(spec.name for spec in turn.toolbox.specs)
        return refuse_call(call, f"There is no tool named {call.name!r}. There are: {names}.")
    if refusal := turn.watch.refusal(call):
        return refuse_call(call, refusal)
    try:
        arguments = found.parameters.decode(call.arguments)
        effects = tuple(found.effects(turn.workspace, arguments))
    except (DecodeError, ToolError, OSError) as error:
        return refuse_call(call, f"{found.name} was not run: {error}", "invalid")
    judged = tuple(
        JudgedEffect(effect=each, decision=turn.gate.judge(each, also)) for each in effects
    )
    is_reading = not found.stateful and found.name not in turn.gate.changing_tools
    return PlannedCall(call, found, arguments, judged, is_reading=is_reading)


def unwrap_tool_call(call: ToolCall) -> ToolCall:
    """The call inside a `tool_call`. A tool that was found by search is planned and judged as
    itself."""
    if call.name != TOOL_CALL or call.broken:
        return call
    name, given = call.arguments.get("name"), call.arguments.get("arguments") or {}
    if isinstance(given, str):
        # Some models encode the inner arguments as a string.
        try:
            given = decode(dict, given.encode())
        except DecodeError:
            given = None
    if not isinstance(name, str) or not isinstance(given, dict):
        why = "`name` must be the name of a tool, `arguments` an object."
        return replace(call, broken=why)
    return replace(call, name=name, arguments=given)


def refuse_call(call: ToolCall, why: str, failure: Failure | None = None) -> ToolResult:
    parts = (Text(text=why),)
    return ToolResult(call_id=call.id, name=call.name, parts=parts, failed=True, failure=failure)


def find_tool(toolbox: Toolbox, name: str) -> Tool | None:
    """Find a tool by name. Small errors in case, dashes and letters are accepted when only one tool
    is similar."""
    if (exact := toolbox.load(name)) is not None:
        return exact
    names = [spec.name for spec in toolbox.specs]
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    if plain in names:
        return toolbox.load(plain)
    import difflib

    near = difflib.get_close_matches(plain, names, n=2, cutoff=0.8)
    return toolbox.load(near[0]) if len(near) == 1 else None


def group_parallel(plans: list[PlannedCall]) -> list[list[PlannedCall]]:
    """The plans in order, in groups that may run in parallel."""
    groups: list[list[PlannedCall]] = []
    for plan in plans:
        if (
            groups
            and all(map(_can_run_in_parallel, (plan, *groups[-1])))
            and not any(_collide(plan, other) for other in groups[-1])
        ):
            groups[-1].append(plan)
        else:
            groups.append([plan])
    return groups


def _can_run_in_parallel(plan: PlannedCall) -> bool:
    """Whether a call may run beside others: it asks no question, needs no person, and has effects
    that can be compared or probably only reads."""
    if plan.tool.interactive or plan.needs_approval:
        return False
    if not plan.judged:
        return plan.is_reading
    return plan.harmless or all(
        isinstance(effect, ReadPath | WritePath | DeletePath) or is_server_read(effect)
        for effect in plan.effects
    )


def _collide(one: PlannedCall, other: PlannedCall) -> bool:
    if (one.harmless or one.is_reading) and (other.harmless or other.is_reading):
        return False
    if one.is_reading or other.is_reading:
        return True
    pairs = ((a, b) for a in one.effects for b in other.effects)
    return any(may_conflict(a, b) for a, b in pairs)
