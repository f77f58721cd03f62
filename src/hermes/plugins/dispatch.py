"""Runs Hermes tools for plugins during a call, through hooks and policy, as an untrusted origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, encode
from hermes.codec.values import JsonObject, replace
from hermes.core.effects import (
    DeletePath,
    ReadPath,
    RunCommand,
    SignalProcess,
    UseTool,
    WritePath,
)
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.hooks import CallOutcome
from hermes.core.messages import Text, ToolCall, ToolResult, joined_text
from hermes.core.tools import Tool, ToolContext
from hermes.plugins.protocol import Denied
from hermes.plugins.surface import PREFIX, PluginTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.core.session import Session
    from hermes.hooks.session import SessionHooks
    from hermes.plugins.run_plugins import HostServices

# The tool context authorizes these effects itself.
_GATED = (RunCommand, SignalProcess, ReadPath, WritePath, DeletePath)


async def dispatch(
    host: HostServices,
    plugin: str,
    session_id: str,
    ctx: ToolContext,
    name: str,
    arguments: JsonObject,
) -> str:
    """Returns the tool's text; raises Denied with a message for the plugin."""
    session, tool = host.find_session(session_id), host.tools.find(name)
    if session is None or tool is None or isinstance(tool, PluginTool):
        raise Denied(f"Plugins have no tool {name!r}.")
    hooks = host.find_hooks(session_id)
    call = ToolCall(id=f"{ctx.call_id}.{PREFIX}{plugin}", name=tool.name, arguments=arguments)
    started = host.run.world.clock.monotonic()
    outcome: CallOutcome = "made"
    try:
        call = await _apply_hooks(session, hooks, ctx, call)
        result = await _run(host.run.redactor.text, session, plugin, ctx, tool, call)
    except (ToolError, DecodeError, OSError) as error:
        outcome = "blocked" if isinstance(error, EffectDenied) else "refused"
        result = ToolResult(
            call_id=call.id, name=call.name, parts=(Text(text=str(error)),), failed=True
        )
    text = None
    if hooks is not None:
        seconds = host.run.world.clock.monotonic() - started
        text = await hooks.after_tool(call, result, seconds, outcome)
    if outcome != "made":
        raise Denied(f"{name} was not run: {result.text}")
    return result.text if text is None else text


async def _apply_hooks(
    session: Session, hooks: SessionHooks | None, ctx: ToolContext, call: ToolCall
) -> ToolCall:
    """Returns the call as changed by hooks; raises EffectDenied if a hook or the user denies it."""
    verdict = await hooks.before_tool(call) if hooks is not None else None
    if verdict is None:
        return call
    if verdict.block is not None:
        raise EffectDenied(verdict.block)
    if verdict.arguments is not None:
        call = replace(call, arguments=verdict.arguments)
    if verdict.ask is not None:
        effect = UseTool(name=call.name, arguments=encode(call.arguments).decode())
        await session.confirm(effect, verdict.ask, ctx.stop)
    return call


async def _run(
    redact: Callable[[str], str],
    session: Session,
    plugin: str,
    ctx: ToolContext,
    tool: Tool,
    call: ToolCall,
) -> ToolResult:
    decoded = tool.parameters.decode(call.arguments)
    for effect in tool.effects(ctx.workspace, decoded):
        if not isinstance(effect, _GATED):
            await session.permit(effect, ctx.stop, frozenset((PREFIX + plugin,)))
    output = await tool(ctx, decoded)
    # Plugins must not see secrets in tool output.
    text = redact(joined_text(output.parts))
    return ToolResult(
        call_id=call.id, name=tool.name, parts=(Text(text=text),), failed=output.failed
    )
