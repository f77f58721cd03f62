"""The skill index in the prompt of a new session, from the home, other folders and the project."""

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
_MAX_CACHED = 32
TOOLS = frozenset(("skills_list", "skill_view", "skill_manage"))

log = logging.getLogger(__name__)


def skills_folder(home: Home) -> Path:
    return home.root / "skills"


def plugin_skills_folder(home: Home) -> Path:
    """Returns the folder into which skills of plugins are unpacked."""
    return home.cache / "plugins" / "skills"


def skills_cache(home: Home) -> Path:
    return home.cache / "skills.json"


def skill_roots(settings: Settings, home: Home, cwd: str) -> tuple[SkillRoot, ...]:
    """Lists the home first: its skills shadow those of the same name elsewhere."""
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
    """Keeps the scanners and index texts of one run; `cache` shares a scan between sessions that
    start together."""

    def __init__(self) -> None:
        self.cache: TtlCache[SkillScan] = TtlCache()
        self._scans: dict[tuple[SkillRoot, ...], SkillScanner] = {}
        self._texts: dict[SkillEnvironment, tuple[SkillScan, str]] = {}

    def scan(self, roots: tuple[SkillRoot, ...], cache: Path) -> SkillScan:
        if roots not in self._scans:
            if len(self._scans) >= _MAX_CACHED:
                self._scans.clear()
            self._scans[roots] = SkillScanner(roots, cache)
        return self.cache.get(roots, self._scans[roots].scan)

    def text(
        self, scanned: SkillScan, here: SkillEnvironment, most_chars: int, recent: Recent
    ) -> str:
        """A truncated index depends on recent use and is not kept."""
        found, text = self._texts.get(here, (None, ""))
        if found is scanned:
            return text
        is_truncated = False

        def recent_names() -> Sequence[str]:
            nonlocal is_truncated
            is_truncated = True
            return recent()

        text = index_text(scanned.entries, here, most_chars=most_chars, recent=recent_names)
        if not is_truncated:
            if len(self._texts) >= _MAX_CACHED:
                self._texts.clear()
            self._texts[here] = scanned, text
        return text


@lru_cache(maxsize=16)
def _whole_toolsets(tools: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the toolsets whose tools are all offered."""
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
    index_cache: SkillIndexCache | None = None,
) -> str:
    """Returns "" if no skill tool is offered. With `only_look`, nothing is written, not even the
    bundled skills. Unreadable folders are skipped."""
    if not settings.skills.enabled or not TOOLS.intersection(tools):
        return ""
    roots, seeds, cache = skill_roots(settings, home, cwd), seeds_of(home), skills_cache(home)
    index_cache = index_cache or SkillIndexCache()
    if only_look:
        if not seeds.manifest() and not seeds.opted_out():
            roots += (SkillRoot(path=str(BUNDLED_SKILLS)),)
        scanned = SkillScanner(roots, cache, persist=False).scan()
    else:
        if seed:
            try:
                seeds.seed_if_new(__version__)
            except OSError as error:
                log.warning("cannot copy bundled skills into the home", extra={"error": str(error)})
        scanned = index_cache.scan(roots, cache)

    def recent() -> Sequence[str]:
        # Imported late: needed only when the index is truncated.
        from hermes.core.world import SystemClock
        from hermes.skills.usage import SkillUsageStore

        return SkillUsageStore(skills_folder(home), SystemClock()).recent()

    here = skills_here(settings, platform, tools)
    most_chars = settings.skills.index_max_chars
    return index_cache.text(scanned, here, most_chars, recent)
