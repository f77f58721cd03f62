"""What plugins get from the program: their surroundings, tools through the policy, the model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import convert, plain
from hermes.codec.values import replace
from hermes.config.model_settings import AuxiliaryTaskSettings
from hermes.core.commands import Say
from hermes.core.errors import HermesError
from hermes.core.messages import user_says
from hermes.core.prompt import Prompt
from hermes.mcp.schemas import clean_schema
from hermes.models.auxiliary import MAIN, Auxiliary
from hermes.plugins.births import Surroundings
from hermes.plugins.discovery import PROJECT, Places
from hermes.plugins.dispatch import dispatch
from hermes.plugins.found import Found
from hermes.plugins.plugins import Plugins
from hermes.plugins.rules import Rules
from hermes.plugins.serving import Denied, Serving
from hermes.plugins.tools import PREFIX, PluginTool
from hermes.tools.catalogue import declarations
from hermes.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes.config.run_context import RunContext
    from hermes.plugins.run_plugins import PluginHost
    from hermes.tools.toolbox import Tools

# The model of a plugin is paid and told like one of a foreign server.
TASK = "mcp"


def plugins_of(host: PluginHost) -> Plugins:
    return load_plugins(
        host.run, serve=partial(_serving, host), taken=lambda: _foreign_tools(host.tools)
    )


def load_plugins(
    run: RunContext, *, serve: Callable[[Rules, Found], Serving], taken: Callable[[], Iterable[str]]
) -> Plugins:
    """`serve` answers what a plugin asks for; `taken` are names of tools that others brought."""
    rules = rules_of(run)
    return Plugins(
        rules,
        places_of(run, rules),
        surroundings_of(run),
        run.world.clock,
        serve=partial(serve, rules),
        scan=_scan,
        clean=clean_schema,
        taken=lambda: (*declarations(), *taken()),
    )


def _foreign_tools(tools: Tools) -> tuple[str, ...]:
    """Tools of MCP servers."""
    added = tools.added
    return tuple(each.spec.name for each in added if not isinstance(each.load(), PluginTool))


def rules_of(run: RunContext) -> Rules:
    return convert(Rules, plain(run.settings.plugins))


def places_of(run: RunContext, rules: Rules) -> Places:
    project = Path(run.settings.terminal.cwd).expanduser().resolve() / PROJECT
    return Places(
        user=str(run.home.root / "plugins"),
        project=str(project) if rules.project and not rules.safe_mode else "",
        pip=not rules.safe_mode,
        allow_override=rules.allow_override,
    )


def surroundings_of(run: RunContext) -> Surroundings:
    secrets = run.config.secrets
    return Surroundings(
        home=run.state_dir,
        person=run.user_home,
        variables={**run.env, **{name: secrets.get(name) for name in secrets.names()}},
        version=__version__,
        profile=run.home.profile,
        mask=lambda text: run.redactor.text(text, "log"),
    )


def _serving(host: PluginHost, rules: Rules, found: Found) -> Serving:
    return Serving(
        found.name,
        rules.grants(found),
        dispatch=partial(dispatch, host),
        inject=partial(_inject, host),
        complete=partial(_complete, host),
    )


async def _inject(host: PluginHost, plugin: str, session_id: str, content: str) -> bool:
    session = host.find_session(session_id)
    if session is None:
        return False
    await session.send(Say(text=host.run.redactor.text(content), origin=PREFIX + plugin))
    return True


async def _complete(
    host: PluginHost, plugin: str, session_id: str, system: str, prompt: str, most: int
) -> str:
    session = host.find_session(session_id)
    if session is None:
        raise Denied("The session is not open any more.")
    own = host.run.settings.auxiliary.mcp
    if own == AuxiliaryTaskSettings():
        own = AuxiliaryTaskSettings(provider=MAIN)
    auxiliary = Auxiliary(
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
    from hermes.policy.scan.scanner import Scanner

    scanned = Scanner().scan(text, "tool_description")
    if scanned.verdict == "safe":
        return "", False
    return scanned.findings[0].id, scanned.verdict == "dangerous"
