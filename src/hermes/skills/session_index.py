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
from hermes.skills.catalogue import (
    Recent,
    SkillEnvironment,
    SkillRoot,
    SkillScan,
    SkillScanner,
    disabled_names,
    index_text,
)
from hermes.skills.seeding import BUNDLED_SKILLS, SkillSeeder
from hermes.skills.skill import SYSTEMS
from hermes.tools.toolbox import resolve_toolsets, toolsets_by_name
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


def skill_roots(settings: Settings, home: Home, cwd: str) -> tuple[SkillRoot, ...]:
    """First the home: what lies there hides what has the same name elsewhere."""
    roots = [SkillRoot(path=str(skills_folder(home)))]
    roots += [
        SkillRoot(path=str(Path(each).expanduser().absolute()), kind="external")
        for each in settings.skills.external_dirs
    ]
    if settings.plugins.enabled and not settings.plugins.safe_mode:
        roots.append(SkillRoot(path=str(plugin_skills_folder(home)), kind="external"))
    if cwd and cwd in settings.skills.trusted_projects:
        roots += [SkillRoot(path=f"{cwd}/{each}", kind="project") for each in PROJECT_FOLDERS]
    return tuple(roots)


def seeds_of(home: Home) -> SkillSeeder:
    return SkillSeeder(skills_folder(home), skills_cache(home))


class SkillIndexCache:
    """What was found and written for sessions before, in one run: while the files stay the same,
    the next session gets the same list."""

    def __init__(self) -> None:
        self.cache: TtlCache[SkillScan] = TtlCache()
        self._scans: dict[tuple[SkillRoot, ...], SkillScanner] = {}
        self._texts: dict[SkillEnvironment, tuple[SkillScan, str]] = {}

    def scan(self, roots: tuple[SkillRoot, ...], cache: Path) -> SkillScan:
        if roots not in self._scans:
            if len(self._scans) >= _MOST_KEPT:
                self._scans.clear()
            self._scans[roots] = SkillScanner(roots, cache)
        return self.cache.get(roots, self._scans[roots].scan)

    def text(
        self, scanned: SkillScan, here: SkillEnvironment, *, most_chars: int, recent: Recent
    ) -> str:
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


def skills_here(settings: Settings, platform: str, tools: tuple[str, ...]) -> SkillEnvironment:
    skills = settings.skills
    return SkillEnvironment(
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
    looked: SkillIndexCache | None = None,
) -> str:
    """Empty without a tool to load a skill with. Who will `only_look` makes nothing, not even the
    first copies of the skills that come with the program. What is wrong with a folder is no reason
    not to talk. `looked` is what sessions before have seen."""
    if not settings.skills.enabled or not TOOLS.intersection(tools):
        return ""
    roots, seeds = skill_roots(settings, home, cwd), seeds_of(home)
    if only_look:
        roots += (
            () if seeds.manifest() or seeds.opted_out() else (SkillRoot(path=str(BUNDLED_SKILLS)),)
        )
    elif seed:
        _seed(seeds)
    cache, looked = skills_cache(home), looked or SkillIndexCache()
    scanned = (
        SkillScanner(roots, cache, kept=False).scan() if only_look else looked.scan(roots, cache)
    )
    return looked.text(
        scanned,
        skills_here(settings, platform, tools),
        most_chars=settings.skills.index_max_chars,
        recent=lambda: _recent(home),
    )


def _seed(seeds: SkillSeeder) -> None:
    try:
        seeds.seed_if_new(__version__)
    except OSError as error:
        log.warning("shipped skills were not put into the home", extra={"error": str(error)})


def _recent(home: Home) -> tuple[str, ...]:
    # Only where not all skills fit.
    from hermes.core.world import SystemClock
    from hermes.skills.usage import SkillUsageStore

    return SkillUsageStore(skills_folder(home), SystemClock()).recent()
