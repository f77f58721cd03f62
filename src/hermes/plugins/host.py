"""What plugins get from the program: their surroundings, tools through the policy, the model."""

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

# The model of a plugin is paid and told like one of a foreign server.
TASK = "mcp"


def plugins_of(host: HostServices) -> PluginRegistry:
    return load_plugins(
        host.run, serve=partial(_serving, host), taken=lambda: _foreign_tools(host.tools)
    )


def load_plugins(
    run: RunContext,
    *,
    serve: Callable[[PluginRules, FoundPlugin], PluginRequests],
    taken: Callable[[], Iterable[str]],
) -> PluginRegistry:
    """`serve` answers what a plugin asks for; `taken` are names of tools that others brought."""
    rules = rules_of(run)
    return PluginRegistry(
        rules,
        places_of(run, rules),
        surroundings_of(run),
        run.world.clock,
        serve=partial(serve, rules),
        scan=_scan,
        clean=clean_schema,
        taken=lambda: (*declarations(), *taken()),
    )


def _foreign_tools(tools: SessionTools) -> tuple[str, ...]:
    """Tools of MCP servers."""
    added = tools.added
    return tuple(each.spec.name for each in added if not isinstance(each.load(), PluginTool))


def rules_of(run: RunContext) -> PluginRules:
    return convert(PluginRules, plain(run.settings.plugins))


def places_of(run: RunContext, rules: PluginRules) -> SearchPaths:
    project = Path(run.settings.terminal.cwd).expanduser().resolve() / PROJECT
    return SearchPaths(
        user=str(run.home.root / "plugins"),
        project=str(project) if rules.project and not rules.safe_mode else "",
        pip=not rules.safe_mode,
        allow_override=rules.allow_override,
    )


def surroundings_of(run: RunContext) -> PluginHost:
    secrets = run.config.secrets
    return PluginHost(
        home=run.state_dir,
        person=run.user_home,
        variables={**run.env, **{name: secrets.get(name) for name in secrets.names()}},
        version=__version__,
        profile=run.home.profile,
        mask=lambda text: run.redactor.text(text, "log"),
    )


def _serving(host: HostServices, rules: PluginRules, found: FoundPlugin) -> PluginRequests:
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
    host: HostServices, plugin: str, session_id: str, system: str, prompt: str, most: int
) -> str:
    session = host.find_session(session_id)
    if session is None:
        raise Denied("The session is not open any more.")
    own = host.run.settings.auxiliary.mcp
    if own == AuxiliaryTaskSettings():
        own = AuxiliaryTaskSettings(provider=MAIN)
    auxiliary = SideModel(
        host.models,
        replace(host.run.settings, auxiliary=replace(host.run.settings.auxiliary, mcp=own)),
        main=lambda: (session.transcript.model, session.transcript.provider),
        tell=session.tell,
    )
    words = Prompt(
        system=system,
        messages=(user_says(prompt, origin=PREFIX + plugin),),
        tools=(),
        max_tokens=most,
    )
    try:
        reply = await auxiliary.ask(TASK, words, session.meter)
    except HermesError as error:
        raise Denied(str(error)) from error
    return reply.message.text


def _scan(text: str) -> tuple[str, bool]:
    from hermes.policy.scan.scanner import TextScanner

    scanned = TextScanner().scan(text, "tool_description")
    if scanned.verdict == "safe":
        return "", False
    return scanned.findings[0].id, scanned.verdict == "dangerous"
