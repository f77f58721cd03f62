"""What plugins get from the program: their surroundings, tools through the policy, the model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.plugins.dispatch import dispatch
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
from hermes.plugins.found import Found
from hermes.plugins.plugins import Plugins
from hermes.plugins.rules import Rules
from hermes.plugins.serving import Denied, Serving
from hermes.plugins.tools import PREFIX, PluginTool
from hermes.tools.catalogue import TARGETS
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.app.build import App

# The model of a plugin is paid and told like one of a foreign server.
TASK = "mcp"


def plugins_of(app: App) -> Plugins:
    rules = rules_of(app)
    return Plugins(
        rules,
        places_of(app, rules),
        surroundings_of(app),
        app.world.clock,
        serve=partial(_serving, app, rules),
        scan=_scan,
        clean=clean_schema,
        taken=lambda: (*TARGETS, *_foreign_tools(app)),
    )


def _foreign_tools(app: App) -> tuple[str, ...]:
    """Of servers."""
    added = app.tools.added
    return tuple(each.spec.name for each in added if not isinstance(each.load(), PluginTool))


def rules_of(app: App) -> Rules:
    return convert(Rules, plain(app.settings.plugins))


def places_of(app: App, rules: Rules) -> Places:
    project = Path(app.settings.terminal.cwd).expanduser().resolve() / PROJECT
    return Places(
        user=str(app.home.root / "plugins"),
        project=str(project) if rules.project and not rules.safe_mode else "",
        pip=not rules.safe_mode,
        allow_override=rules.allow_override,
    )


def surroundings_of(app: App) -> Surroundings:
    secrets = app.config.secrets
    return Surroundings(
        home=app.state,
        person=app.person,
        variables={**app.env, **{name: secrets.get(name) for name in secrets.names()}},
        version=__version__,
        profile=app.home.profile,
        mask=lambda text: app.secrecy.text(text, "log"),
    )


def _serving(app: App, rules: Rules, found: Found) -> Serving:
    return Serving(
        found.name,
        rules.grants(found),
        dispatch=partial(dispatch, app),
        inject=partial(_inject, app),
        complete=partial(_complete, app),
    )


async def _inject(app: App, plugin: str, session_id: str, content: str) -> bool:
    session = app.opened(session_id)
    if session is None:
        return False
    await session.send(Say(text=app.secrecy.text(content), origin=PREFIX + plugin))
    return True


async def _complete(
    app: App, plugin: str, session_id: str, system: str, prompt: str, most: int
) -> str:
    session = app.opened(session_id)
    if session is None:
        raise Denied("The session is not open any more.")
    own = app.settings.auxiliary.mcp
    if own == AuxiliaryTaskSettings():
        own = AuxiliaryTaskSettings(provider=MAIN)
    auxiliary = Auxiliary(
        app.models,
        replace(app.settings, auxiliary=replace(app.settings.auxiliary, mcp=own)),
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
