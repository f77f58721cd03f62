"""The list of skills in a new session's prompt: what a home, other folders and a project have."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from hermes.app.plugged import skills_of_plugins
from hermes.config.home import Home
from hermes.config.settings import Settings
from hermes.skills.conditions import Here, disabled_names
from hermes.skills.index import index_text
from hermes.skills.scan import Root, Scan
from hermes.skills.seeding import SHIPPED, Seeds
from hermes.skills.skill import SYSTEMS
from hermes.tools.toolsets import TOOLSETS, resolve_toolsets
from hermes.version import __version__

PROJECT_FOLDERS = (".hermes/skills", ".agents/skills", ".claude/skills")
TOOLS = frozenset(("skills_list", "skill_view", "skill_manage"))

log = logging.getLogger(__name__)


def skills_folder(home: Home) -> Path:
    return home.root / "skills"


def skills_cache(home: Home) -> Path:
    return home.cache / "skills.json"


def skill_roots(settings: Settings, home: Home, cwd: str) -> tuple[Root, ...]:
    """First the home: what lies there hides what has the same name elsewhere."""
    roots = [Root(path=str(skills_folder(home)))]
    roots += [
        Root(path=str(Path(each).expanduser().absolute()), kind="external")
        for each in settings.skills.external_dirs
    ]
    if settings.plugins.enabled and not settings.plugins.safe_mode:
        roots.append(Root(path=str(skills_of_plugins(home.cache)), kind="external"))
    if cwd and cwd in settings.skills.trusted_projects:
        roots += [Root(path=f"{cwd}/{each}", kind="project") for each in PROJECT_FOLDERS]
    return tuple(roots)


def seeds_of(home: Home) -> Seeds:
    return Seeds(skills_folder(home), skills_cache(home))


def skills_here(settings: Settings, platform: str, tools: tuple[str, ...]) -> Here:
    skills = settings.skills
    offered = set(tools)
    return Here(
        platform=platform,
        system=SYSTEMS.get(sys.platform, sys.platform),
        tools=tools,
        toolsets=tuple(name for name in TOOLSETS if offered.issuperset(resolve_toolsets((name,)))),
        disabled=disabled_names(skills.disabled, skills.platform_disabled, platform),
    )


def skill_index(
    settings: Settings,
    home: Home,
    *,
    platform: str,
    cwd: str,
    tools: tuple[str, ...],
    only_look: bool = False,
    seed: bool = True,
) -> str:
    """Empty without a tool to load a skill with. Who will `only_look` makes nothing, not even the
    first copies of the skills that come with the program. What is wrong with a folder is no reason
    not to talk."""
    if not settings.skills.enabled or not TOOLS.intersection(tools):
        return ""
    roots, seeds = skill_roots(settings, home, cwd), seeds_of(home)
    if only_look:
        roots += () if seeds.manifest() or seeds.opted_out() else (Root(path=str(SHIPPED)),)
    elif seed:
        _seed(seeds)
    scanned = Scan(roots, skills_cache(home), kept=not only_look).look()
    return index_text(
        scanned.entries,
        skills_here(settings, platform, tools),
        most_chars=settings.skills.index_max_chars,
        recent=lambda: _recent(home),
    )


def _seed(seeds: Seeds) -> None:
    try:
        seeds.seed_if_new(__version__)
    except OSError as error:
        log.warning("shipped skills were not put into the home", extra={"error": str(error)})


def _recent(home: Home) -> tuple[str, ...]:
    # Only where not all skills fit.
    from hermes.core.world import SystemClock
    from hermes.skills.usage import Usages

    return Usages(skills_folder(home), SystemClock()).recent()
