"""What the requests of a new session begin with, as things are now: the system text and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hermes.context.context_files import file_scan
from hermes.context.prompting import SystemText, system_text
from hermes.context.soul import write_default_soul
from hermes.context.system import Slots
from hermes.context.toolchain import toolchain_notes
from hermes.core.session_request import SessionRequest
from hermes.memory.snapshots import external_block
from hermes.models.choice import ModelChoice
from hermes.skills.session_index import skill_index
from hermes.tools.toolbox import SEARCHING, resolve_toolsets, wanted_names

if TYPE_CHECKING:
    from hermes.app.build import App


class SessionPrompt(NamedTuple):
    """`tools` are those that every request names."""

    text: SystemText
    tools: tuple[str, ...]


def session_prompt(
    app: App,
    opening: SessionRequest,
    choice: ModelChoice,
    cwd: str,
    *,
    memory: str = "",
    only_look: bool = False,
) -> SessionPrompt:
    """Who will `only_look` leaves the home as it is."""
    names = wanted_names(app.settings, platform=opening.platform, reduced=choice.reduced)
    if opening.toolsets:
        # All of them are named: a way to find others would be a way around the choice.
        chosen = set(resolve_toolsets(opening.toolsets)) - set(SEARCHING)
        tools = app.tools.filter_known(name for name in names if name in chosen)
    else:
        tokens = app.settings.context.direct_tool_tokens
        tools = app.tools.choose_direct(names, tokens, more=opening.brings_tools)
    skills = skill_index(
        app.settings,
        app.home,
        platform=opening.platform,
        cwd=cwd,
        tools=tools,
        only_look=only_look,
        seed=not app.is_seeded,
        looked=app.skill_index_cache,
    )
    if not only_look and not app.is_seeded:
        write_default_soul(app.home)
    app.is_seeded = not only_look
    text = system_text(
        opening,
        choice,
        app.settings,
        app.home,
        cwd=cwd,
        tools=tools,
        now=app.world.clock.now(),
        slots=Slots(memory=memory, skills=skills, provider=external_block(app.memory, opening)),
        session_id=opening.session_id if opening.tell_id else "",
        scan=file_scan(app.run, cwd),
        clean=app.secrecy.text,
        unusual=_toolchain_notes(app, tools),
    )
    return SessionPrompt(text, tools)


def _toolchain_notes(app: App, tools: tuple[str, ...]) -> str:
    wanted = app.settings.agent.environment_probe and "terminal" in tools
    return toolchain_notes(app.env) if wanted else ""
