"""Tools of ours that plugins use while they answer a call: past the same hooks and the same policy,
as a stranger's wish."""

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

# The handles of a call ask for these themselves.
_GATED = (RunCommand, SignalProcess, ReadPath, WritePath, DeletePath)


async def dispatch(
    host: HostServices,
    plugin: str,
    session_id: str,
    ctx: ToolContext,
    name: str,
    arguments: JsonObject,
) -> str:
    """What the tool says; Denied, with words for the plugin."""
    session, tool = host.find_session(session_id), host.tools.find(name)
    if session is None or tool is None or isinstance(tool, PluginTool):
        raise Denied(f"There is no tool {name!r} for plugins.")
    hooks = host.find_hooks(session_id)
    call = ToolCall(id=f"{ctx.call_id}.{PREFIX}{plugin}", name=tool.name, arguments=arguments)
    begun = host.run.world.clock.monotonic()
    fate: CallOutcome = "made"
    try:
        call = await _apply_hooks(session, hooks, ctx, call)
        result = await _run(host.run.redactor.text, session, plugin, ctx, tool, call)
    except (ToolError, DecodeError, OSError) as error:
        fate = "blocked" if isinstance(error, EffectDenied) else "refused"
        result = ToolResult(
            call_id=call.id, name=call.name, parts=(Text(text=str(error)),), failed=True
        )
    text = None
    if hooks is not None:
        seconds = host.run.world.clock.monotonic() - begun
        text = await hooks.after_tool(call, result, seconds, fate)
    if fate != "made":
        raise Denied(f"{name} was not run: {result.text}")
    return result.text if text is None else text


async def _apply_hooks(
    session: Session, hooks: SessionHooks | None, ctx: ToolContext, call: ToolCall
) -> ToolCall:
    """The call as hooks leave it; EffectDenied where one of them, or the person that it wants to
    be asked, says no."""
    verdict = await hooks.before_tool(call) if hooks is not None else None
    if verdict is None:
        return call
    if verdict.block is not None:
        raise EffectDenied(verdict.block)
    if verdict.arguments is not None:
        call = replace(call, arguments=verdict.arguments)
    if verdict.ask is not None:
        whole = UseTool(name=call.name, arguments=encode(call.arguments).decode())
        await session.confirm(whole, verdict.ask, ctx.stop)
    return call


async def _run(
    redact: Callable[[str], str],
    session: Session,
    plugin: str,
    ctx: ToolContext,
    tool: Tool,
    call: ToolCall,
) -> ToolResult:
    given = tool.parameters.decode(call.arguments)
    for effect in tool.effects(ctx.workspace, given):
        if not isinstance(effect, _GATED):
            await session.permit(effect, ctx.stop, frozenset((PREFIX + plugin,)))
    output = await tool(ctx, given)
    # A plugin is no place for secrets that a tool has met.
    text = redact(joined_text(output.parts))
    return ToolResult(
        call_id=call.id, name=tool.name, parts=(Text(text=text),), failed=output.failed
    )
