"""What the host offers to plugins: their environment, tools through the policy, a model."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import convert, plain
from hermes.codec.values import JsonObject
from hermes.core.commands import Say
from hermes.core.errors import HermesError
from hermes.core.hooks import BLOCKED
from hermes.core.messages import user_says
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
    tool = host.tools.find(name)
    if host.find_session(session_id) is None or tool is None or isinstance(tool, PluginTool):
        raise Denied(f"Plugins have no tool {name!r}.")
    origin = PREFIX + plugin
    number = ctx.service(_DispatchCounter).next_of(ctx.call_id)
    result = await ctx.call_tool(tool.name, arguments, key=f"{origin}.{number}", origin=origin)
    if result.denied is not None or BLOCKED in result.details:
        raise Denied(f"{name} was not run: {result.text}")
    return result.text


class _DispatchCounter:
    """Numbers the tool calls that plugins make during each call."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def next_of(self, call_id: str) -> int:
        self._made[call_id] += 1
        return self._made[call_id]


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
