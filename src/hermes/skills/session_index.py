"""The list of skills in a new session's prompt: what a home, other folders and a project have."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from hermes.codec.ttl_cache import TtlCache
from hermes.config.home import Home
from hermes.config.settings import Settings
from hermes.skills.conditions import Here, disabled_names
from hermes.skills.index import Recent, index_text
from hermes.skills.scan import Root, Scan, Scanned
from hermes.skills.seeding import SHIPPED, Seeds
from hermes.skills.skill import SYSTEMS
from hermes.tools.toolsets import resolve_toolsets, toolsets_by_name
from hermes.version import __version__

PROJECT_FOLDERS = (".hermes/skills", ".agents/skills", ".claude/skills")
_MOST_KEPT = 32
TOOLS = frozenset(("skills_list", "skill_view", "skill_manage"))

log = logging.getLogger(__name__)


def skills_folder(home: Home) -> Path:
    return home.root / "skills"


def plugin_skills_folder(home: Home) -> Path:
    """Where skills that plugins bring are unpacked."""
    return home.cache / "plugins" / "skills"


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
        roots.append(Root(path=str(plugin_skills_folder(home)), kind="external"))
    if cwd and cwd in settings.skills.trusted_projects:
        roots += [Root(path=f"{cwd}/{each}", kind="project") for each in PROJECT_FOLDERS]
    return tuple(roots)


def seeds_of(home: Home) -> Seeds:
    return Seeds(skills_folder(home), skills_cache(home))


class Looked:
    """What was found and written for sessions before, in one run: while the files stay the same,
    the next session gets the same list."""

    def __init__(self) -> None:
        self.cache: TtlCache[Scanned] = TtlCache()
        self._scans: dict[tuple[Root, ...], Scan] = {}
        self._texts: dict[Here, tuple[Scanned, str]] = {}

    def scan(self, roots: tuple[Root, ...], cache: Path) -> Scanned:
        if roots not in self._scans:
            if len(self._scans) >= _MOST_KEPT:
                self._scans.clear()
            self._scans[roots] = Scan(roots, cache)
        return self.cache.get(roots, self._scans[roots].look)

    def text(self, scanned: Scanned, here: Here, *, most_chars: int, recent: Recent) -> str:
        """Of a list that is too long, what was used lately tells what to leave out: such a one is
        written anew."""
        found, text = self._texts.get(here, (None, ""))
        if found is scanned:
            return text
        cut: list[bool] = []

        def used() -> Sequence[str]:
            cut.append(True)
            return recent()

        text = index_text(scanned.entries, here, most_chars=most_chars, recent=used)
        if not cut:
            if len(self._texts) >= _MOST_KEPT:
                self._texts.clear()
            self._texts[here] = scanned, text
        return text


@lru_cache(maxsize=16)
def _whole_toolsets(tools: tuple[str, ...]) -> tuple[str, ...]:
    """Those of which every tool is on offer."""
    offered = set(tools)
    return tuple(
        name for name in toolsets_by_name() if offered.issuperset(resolve_toolsets((name,)))
    )


def skills_here(settings: Settings, platform: str, tools: tuple[str, ...]) -> Here:
    skills = settings.skills
    return Here(
        platform=platform,
        system=SYSTEMS.get(sys.platform, sys.platform),
        tools=tools,
        toolsets=_whole_toolsets(tools),
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
    looked: Looked | None = None,
) -> str:
    """Empty without a tool to load a skill with. Who will `only_look` makes nothing, not even the
    first copies of the skills that come with the program. What is wrong with a folder is no reason
    not to talk. `looked` is what sessions before have seen."""
    if not settings.skills.enabled or not TOOLS.intersection(tools):
        return ""
    roots, seeds = skill_roots(settings, home, cwd), seeds_of(home)
    if only_look:
        roots += () if seeds.manifest() or seeds.opted_out() else (Root(path=str(SHIPPED)),)
    elif seed:
        _seed(seeds)
    cache, looked = skills_cache(home), looked or Looked()
    scanned = Scan(roots, cache, kept=False).look() if only_look else looked.scan(roots, cache)
    return looked.text(
        scanned,
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
