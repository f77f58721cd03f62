"""What the host offers to plugins: their environment, tools through the policy, a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, convert, encode, plain
from hermes.codec.values import JsonObject, replace
from hermes.core.commands import Say
from hermes.core.effects import DeletePath, ReadPath, RunCommand, SignalProcess, UseTool, WritePath
from hermes.core.errors import EffectDenied, HermesError, ToolError
from hermes.core.hooks import CallOutcome
from hermes.core.messages import Text, ToolCall, ToolResult, joined_text, user_says
from hermes.core.prompt import Prompt
from hermes.core.tools import ToolContext
from hermes.mcp.listing import clean_schema, scan_description
from hermes.mcp.session_hosting import TASK, guest_model
from hermes.plugins.discovery import PROJECT, FoundPlugin, SearchPaths
from hermes.plugins.permissions import PluginRules
from hermes.plugins.protocol import Denied, PluginRequests
from hermes.plugins.registry import PluginRegistry
from hermes.plugins.sandbox import PluginHost
from hermes.plugins.surface import PREFIX, PluginTool
from hermes.tools.catalogue import declarations
from hermes.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.hooks.session import SessionHooks
    from hermes.plugins.run_plugins import HostServices


def create_registry(host: HostServices) -> PluginRegistry:
    def serve(rules: PluginRules, plugin: FoundPlugin) -> PluginRequests:
        return PluginRequests(
            plugin.name,
            rules.grants(plugin),
            dispatch=partial(_dispatch, host),
            inject=partial(_inject, host),
            complete=partial(_complete, host),
        )

    def server_tool_names() -> list[str]:
        added = host.tools.added
        return [each.spec.name for each in added if not isinstance(each.load(), PluginTool)]

    return load_plugins(host.run, serve=serve, reserved_names=server_tool_names)


def load_plugins(
    run: RunContext,
    *,
    serve: Callable[[PluginRules, FoundPlugin], PluginRequests],
    reserved_names: Callable[[], Iterable[str]],
) -> PluginRegistry:
    """Load the plugins of a run. `serve` handles a plugin's requests; `reserved_names` returns tool
    names of other sources."""
    rules = convert(PluginRules, plain(run.settings.plugins))
    project = Path(run.settings.terminal.cwd).expanduser().resolve() / PROJECT
    search_paths = SearchPaths(
        user=str(run.home.root / "plugins"),
        project=str(project) if rules.project and not rules.safe_mode else "",
        pip=not rules.safe_mode,
        allow_override=rules.allow_override,
    )
    secrets = run.config.secrets
    host = PluginHost(
        home=run.state_dir,
        person=run.user_home,
        variables={**run.env, **{name: secrets.get(name) for name in secrets.names()}},
        version=__version__,
        profile=run.home.profile,
        mask=lambda text: run.redactor.text(text, "log"),
    )
    return PluginRegistry(
        rules,
        search_paths,
        host,
        run.world.clock,
        serve=partial(serve, rules),
        scan=scan_description,
        clean=clean_schema,
        reserved_names=lambda: (*declarations(), *reserved_names()),
    )


# The tool context authorizes these effects itself.
_GATED = (RunCommand, SignalProcess, ReadPath, WritePath, DeletePath)


async def _dispatch(
    host: HostServices,
    plugin: str,
    session_id: str,
    ctx: ToolContext,
    name: str,
    arguments: JsonObject,
) -> str:
    """Run a Hermes tool during a call of a plugin, through hooks and policy, as an untrusted
    origin. Return the tool's text; raise Denied with a message for the plugin."""
    session, tool = host.find_session(session_id), host.tools.find(name)
    if session is None or tool is None or isinstance(tool, PluginTool):
        raise Denied(f"Plugins have no tool {name!r}.")
    hooks = host.find_hooks(session_id)
    origin = PREFIX + plugin
    call = ToolCall(id=f"{ctx.call_id}.{origin}", name=tool.name, arguments=arguments)
    started = host.run.world.clock.monotonic()
    outcome: CallOutcome = "made"
    failed = True
    try:
        call = await _apply_hooks(session, hooks, ctx, call)
        decoded = tool.parameters.decode(call.arguments)
        for effect in tool.effects(ctx.workspace, decoded):
            if not isinstance(effect, _GATED):
                await session.permit(effect, ctx.stop, frozenset((origin,)))
        output = await tool(ctx, decoded)
        # Plugins must not see secrets in tool output.
        text, failed = host.run.redactor.text(joined_text(output.parts)), output.failed
    except (ToolError, DecodeError, OSError) as error:
        outcome = "blocked" if isinstance(error, EffectDenied) else "refused"
        text = str(error)
    changed = None
    if hooks is not None:
        result = ToolResult(
            call_id=call.id, name=call.name, parts=(Text(text=text),), failed=failed
        )
        seconds = host.run.world.clock.monotonic() - started
        changed = await hooks.after_tool(call, result, seconds, outcome)
    if outcome != "made":
        raise Denied(f"{name} was not run: {text}")
    return text if changed is None else changed


async def _apply_hooks(
    session: Session, hooks: SessionHooks | None, ctx: ToolContext, call: ToolCall
) -> ToolCall:
    """Return the call as changed by hooks; raise EffectDenied if a hook or the user denies it."""
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


async def _inject(host: HostServices, plugin: str, session_id: str, content: str) -> bool:
    session = host.find_session(session_id)
    if session is None:
        return False
    await session.send(Say(text=host.run.redactor.text(content), origin=PREFIX + plugin))
    return True


async def _complete(
    host: HostServices, plugin: str, session_id: str, system: str, prompt: str, max_tokens: int
) -> str:
    session = host.find_session(session_id)
    if session is None:
        raise Denied("The session is closed.")
    request = Prompt(
        system=system,
        messages=(user_says(prompt, origin=PREFIX + plugin),),
        tools=(),
        max_tokens=max_tokens,
    )
    try:
        model = guest_model(host.run, host.models, session)
        reply = await model.ask(TASK, request, session.meter)
    except HermesError as error:
        raise Denied(str(error)) from error
    return reply.message.text
