"""The skill index in the prompt of a new session, from the home, other folders and the project."""

from __future__ import annotations

import logging
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.ttl_cache import TtlCache
from hermes.config.home import Home
from hermes.config.settings import Settings
from hermes.skills.discovery import (
    SkillEntry,
    SkillEnvironment,
    SkillRoot,
    SkillScan,
    SkillScanner,
    disabled_names,
    is_available,
)
from hermes.skills.seeding import BUNDLED_SKILLS, SkillSeeder
from hermes.skills.skill import SYSTEMS, Skill
from hermes.tools.toolbox import resolve_toolsets, toolsets_by_name
from hermes.version import __version__

log = logging.getLogger(__name__)

PROJECT_FOLDERS = (".hermes/skills", ".agents/skills", ".claude/skills")
_MAX_CACHED = 32
TOOLS = frozenset(("skills_list", "skill_view", "skill_manage"))
HEAD = (
    "Before a task, load each skill that fits it with skill_view and follow it. Fix a skill that "
    "proved wrong with skill_manage; after hard or corrected work, save one."
)
OPENING = "<available_skills>"
CLOSING = "</available_skills>"
MORE = "skills_list shows all."
LEAST = len(HEAD) + len(OPENING) + len(CLOSING) + len(MORE) + 60
LONGEST_LINE = 60
NO_CATEGORY = "general"

# Approximates one token: a short word, three digits or a sign; a hyphen joins the next word.
_PIECE = (
    r"[A-Za-z]{1,9}|[0-9]{1,3}|[\u00c0-\u1fff]{1,3}|-(?![A-Za-z])|[^\sA-Za-z0-9\u00c0-\u1fff-]|\n"
)
# The same for ASCII texts, at a tenth of the cost of compiling it.
_ASCII_PIECE = r"[A-Za-z]{1,9}|[0-9]{1,3}|-(?![A-Za-z])|[^\sA-Za-z0-9-]|\n"

Recent = Callable[[], Sequence[str]]


def skills_folder(home: Home) -> Path:
    return home.root / "skills"


def plugin_skills_folder(home: Home) -> Path:
    """Return the folder into which skills of plugins are unpacked."""
    return home.cache / "plugins" / "skills"


def skills_cache(home: Home) -> Path:
    return home.cache / "skills.json"


def skill_roots(settings: Settings, home: Home, cwd: str) -> tuple[SkillRoot, ...]:
    """List the folders with skills. The home comes first: its skills shadow those of the same name
    elsewhere. In the folder of somebody other than the owner, these are the bundled skills: what
    the owner wrote or installed is the owner's."""
    if cwd and Path(cwd).is_relative_to(home.people):
        return (SkillRoot(path=str(BUNDLED_SKILLS)),)
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


def is_indexed(entry: SkillEntry, here: SkillEnvironment) -> bool:
    """Return whether the prompt lists the skill."""
    conditions, tools, toolsets = entry.skill.conditions, set(here.tools), set(here.toolsets)
    return (
        is_available(entry, here)
        and tools.issuperset(conditions.requires_tools)
        and toolsets.issuperset(conditions.requires_toolsets)
        and tools.isdisjoint(conditions.fallback_for_tools)
        and toolsets.isdisjoint(conditions.fallback_for_toolsets)
    )


def index_text(
    entries: Sequence[SkillEntry],
    here: SkillEnvironment,
    *,
    most_chars: int,
    recent: Recent = tuple,
) -> str:
    """Return the index, at most `most_chars` long in characters, bytes or tokens; "" when nothing
    is shown or fits. `recent` names skills by last use: they come first when space is short."""
    shown = [entry for entry in entries if is_indexed(entry, here)]
    if not shown or most_chars < LEAST:
        return ""
    whole = _text(shown, {entry.name for entry in shown}, hidden=0)
    if _size(whole) <= most_chars:
        return whole
    ranks = {name: rank for rank, name in enumerate(recent())}
    by_use = sorted(_interleave(shown), key=lambda entry: ranks.get(entry.name, len(ranks)))
    space = most_chars - _size(_text(shown, set(), hidden=0))
    if space < 0:
        # As many names as fit, and the number of the rest.
        def name_some(count: int) -> str:
            return _text(by_use[:count], set(), hidden=len(by_use) - count)

        sizes = range(len(by_use))
        fitting = bisect_right(sizes, most_chars, key=lambda count: _size(name_some(count)))
        return name_some(max(0, fitting - 1))
    described: set[str] = set()
    for entry in by_use:
        # Its name moves from the list to its own line.
        space -= _size(index_line(entry.skill)) + CHARS_PER_TOKEN
        if space < 0:
            break
        described.add(entry.name)
    return _text(shown, described, hidden=0)


def _interleave(entries: Sequence[SkillEntry]) -> list[SkillEntry]:
    """Interleave the categories, so that every kind of task stays listed."""
    seen: Counter[str] = Counter()
    places: list[int] = []
    for entry in entries:
        places.append(seen[entry.category])
        seen[entry.category] += 1
    return [entries[n] for n in sorted(range(len(entries)), key=places.__getitem__)]


def _size(text: str) -> int:
    """Return the size in characters of plain English; digits, signs and other scripts weigh more.
    The list consists of names, for which `estimate_tokens` is too low by half."""
    pieces = sum(1 for _ in re.finditer(_ASCII_PIECE if text.isascii() else _PIECE, text))
    return max(len(text.encode()), pieces * CHARS_PER_TOKEN)


def _text(entries: Sequence[SkillEntry], described: set[str], *, hidden: int) -> str:
    lines = [HEAD, OPENING]
    categories: dict[str, list[SkillEntry]] = {}
    for entry in sorted(entries, key=lambda each: (each.category, each.name)):
        categories.setdefault(entry.category or NO_CATEGORY, []).append(entry)
    for category, inner in categories.items():
        bare = ", ".join(entry.name for entry in inner if entry.name not in described)
        lines.append(f"{category}: {bare}".rstrip())
        lines += [index_line(entry.skill) for entry in inner if entry.name in described]
    if hidden:
        lines.append(f"+{hidden} more; {MORE}")
    return "\n".join((*lines, CLOSING))


def index_line(skill: Skill) -> str:
    """Format one skill for the index."""
    # A description must not close the list.
    about = skill.description.replace("<", "‹").replace(">", "›")
    short = about if len(about) <= LONGEST_LINE else about[: LONGEST_LINE - 1].rstrip() + "…"
    return f"- {skill.name}: {short}"


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
        """Return the index text. A truncated index depends on recent use and is not kept."""
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
    """Return the toolsets whose tools are all offered."""
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
    """Return the skill index of a session, or "" if no skill tool is offered. With `only_look`,
    nothing is written, not even the bundled skills. Unreadable folders are skipped."""
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
        from hermes.skills.usage import recently_used

        return recently_used(skills_folder(home))

    here = skills_here(settings, platform, tools)
    most_chars = settings.skills.index_max_chars
    return index_cache.text(scanned, here, most_chars, recent)
