"""What the host offers to plugins: their environment, tools through the policy, a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import convert, plain
from hermes.codec.values import replace
from hermes.config.provider_settings import AuxiliaryTaskSettings
from hermes.core.commands import Say
from hermes.core.errors import HermesError
from hermes.core.messages import user_says
from hermes.core.prompt import Prompt
from hermes.mcp.listing import clean_schema
from hermes.models.side_model import MAIN, SideModel
from hermes.plugins.discovery import PROJECT, FoundPlugin, SearchPaths
from hermes.plugins.dispatch import dispatch
from hermes.plugins.launch import PluginHost
from hermes.plugins.permissions import PluginRules
from hermes.plugins.protocol import Denied, PluginRequests
from hermes.plugins.registry import PluginRegistry
from hermes.plugins.surface import PREFIX, PluginTool
from hermes.tools.catalogue import declarations
from hermes.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.config.run_context import RunContext
    from hermes.plugins.run_plugins import HostServices
    from hermes.tools.toolbox import SessionTools

# Plugins use the side-model settings of MCP servers.
TASK = "mcp"


def create_registry(host: HostServices) -> PluginRegistry:
    return load_plugins(
        host.run,
        serve=partial(_requests_for, host),
        reserved_names=lambda: _server_tool_names(host.tools),
    )


def load_plugins(
    run: RunContext,
    *,
    serve: Callable[[PluginRules, FoundPlugin], PluginRequests],
    reserved_names: Callable[[], Iterable[str]],
) -> PluginRegistry:
    """`serve` handles a plugin's requests; `reserved_names` returns tool names of other sources."""
    rules = plugin_rules(run)
    return PluginRegistry(
        rules,
        search_paths(run, rules),
        plugin_host(run),
        run.world.clock,
        serve=partial(serve, rules),
        scan=_scan,
        clean=clean_schema,
        reserved_names=lambda: (*declarations(), *reserved_names()),
    )


def _server_tool_names(tools: SessionTools) -> tuple[str, ...]:
    """Returns the names of tools of MCP servers."""
    added = tools.added
    return tuple(each.spec.name for each in added if not isinstance(each.load(), PluginTool))


def plugin_rules(run: RunContext) -> PluginRules:
    return convert(PluginRules, plain(run.settings.plugins))


def search_paths(run: RunContext, rules: PluginRules) -> SearchPaths:
    project = Path(run.settings.terminal.cwd).expanduser().resolve() / PROJECT
    return SearchPaths(
        user=str(run.home.root / "plugins"),
        project=str(project) if rules.project and not rules.safe_mode else "",
        pip=not rules.safe_mode,
        allow_override=rules.allow_override,
    )


def plugin_host(run: RunContext) -> PluginHost:
    secrets = run.config.secrets
    return PluginHost(
        home=run.state_dir,
        person=run.user_home,
        variables={**run.env, **{name: secrets.get(name) for name in secrets.names()}},
        version=__version__,
        profile=run.home.profile,
        mask=lambda text: run.redactor.text(text, "log"),
    )


def _requests_for(host: HostServices, rules: PluginRules, found: FoundPlugin) -> PluginRequests:
    return PluginRequests(
        found.name,
        rules.grants(found),
        dispatch=partial(dispatch, host),
        inject=partial(_inject, host),
        complete=partial(_complete, host),
    )


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
    own = host.run.settings.auxiliary.mcp
    if own == AuxiliaryTaskSettings():
        own = AuxiliaryTaskSettings(provider=MAIN)
    auxiliary = SideModel(
        host.models,
        replace(host.run.settings, auxiliary=replace(host.run.settings.auxiliary, mcp=own)),
        main=lambda: (session.transcript.model, session.transcript.provider),
        tell=session.tell,
    )
    request = Prompt(
        system=system,
        messages=(user_says(prompt, origin=PREFIX + plugin),),
        tools=(),
        max_tokens=max_tokens,
    )
    try:
        reply = await auxiliary.ask(TASK, request, session.meter)
    except HermesError as error:
        raise Denied(str(error)) from error
    return reply.message.text


def _scan(text: str) -> tuple[str, bool]:
    from hermes.policy.scan.scanner import TextScanner

    scanned = TextScanner().scan(text, "tool_description")
    if scanned.verdict == "safe":
        return "", False
    return scanned.findings[0].id, scanned.verdict == "dangerous"
