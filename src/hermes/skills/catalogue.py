"""Finds skills, decides where they apply and builds the prompt index."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import Value
from hermes.core.errors import UsageError
from hermes.skills.skill import (
    MAIN,
    MOST_CHARS,
    READABLE,
    Skill,
    parse_skill,
    read_frontmatter,
    split_frontmatter,
)

SNAPSHOT_VERSION = 1
DEEPEST = 4
CATEGORY_FILE = "DESCRIPTION.md"
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv", "site-packages", *READABLE))

RootKind = Literal["home", "external", "project"]


class SkillRoot(Value):
    """A folder with skills. Only those of the home may be changed."""

    path: str
    kind: RootKind = "home"


class SkillEntry(Value):
    """A found skill. `category` is the path between its root and its folder."""

    skill: Skill
    folder: str
    category: str
    kind: RootKind = "home"

    @property
    def name(self) -> str:
        return self.skill.name


class BrokenSkill(Value):
    """A folder with an invalid SKILL.md."""

    folder: str
    problem: str


class SkillScan(Value):
    """Result of a scan. The first of several skills of one name counts; `shadowed` ones are
    addressed by folder. `categories` holds descriptions."""

    entries: tuple[SkillEntry, ...] = ()
    shadowed: tuple[SkillEntry, ...] = ()
    broken: tuple[BrokenSkill, ...] = ()
    categories: dict[str, str] = {}

    def find(self, name: str) -> SkillEntry | None:
        return next((entry for entry in self.entries if entry.name == name), None)


class _Seen(Value, array_like=True):
    """The cached content of a file."""

    modified_ns: int
    size: int
    skill: Skill | None = None
    words: str = ""


class _Snapshot(Value):
    version: int = 0
    files: dict[str, _Seen] = {}


class SkillScanner:
    """Scans `roots`. Parsed files are cached in `cache` unless `persist` is False."""

    def __init__(self, roots: Sequence[SkillRoot], cache: Path, *, persist: bool = True) -> None:
        self._roots = roots
        self._cache = cache
        self._persist = persist
        self._known: dict[str, _Seen] | None = None
        self._last: SkillScan | None = None

    def scan(self) -> SkillScan:
        """Returns the same object while nothing has changed."""
        known = self._load() if self._known is None else self._known
        found = [
            (path, category, root.kind, _read_changed(path, stat, known.get(path)))
            for root in self._roots
            for path, category, stat in _files(root.path, "", 0)
        ]
        seen = {path: file for path, _, _, file in found}
        if self._last is None or seen != known:
            if seen != known and self._persist:
                data = encode(_Snapshot(version=SNAPSHOT_VERSION, files=seen))
                # Without the cache the next start reads the files again.
                with suppress(OSError):
                    replace_file(self._cache, data, durable=False)
            self._known, self._last = seen, _build_result(found)
        return self._last

    def _load(self) -> dict[str, _Seen]:
        try:
            snapshot = decode(_Snapshot, self._cache.read_bytes())
        except (OSError, DecodeError):
            return {}
        return snapshot.files if snapshot.version == SNAPSHOT_VERSION else {}


def _build_result(found: Sequence[tuple[str, str, RootKind, _Seen]]) -> SkillScan:
    """Builds the result; earlier roots take precedence."""
    entries: dict[str, SkillEntry] = {}
    shadowed: list[SkillEntry] = []
    broken: list[BrokenSkill] = []
    categories: dict[str, str] = {}
    for path, category, kind, file in found:
        folder = os.path.dirname(path)  # noqa: PTH120 - called for every file at every start
        if path.endswith(CATEGORY_FILE):
            categories.setdefault(category, file.words)
        elif file.skill is None:
            broken.append(BrokenSkill(folder=folder, problem=file.words))
        else:
            entry = SkillEntry(skill=file.skill, folder=folder, category=category, kind=kind)
            if entries.setdefault(entry.name, entry) is not entry:
                shadowed.append(entry)
    return SkillScan(
        entries=tuple(sorted(entries.values(), key=lambda each: (each.category, each.name))),
        shadowed=tuple(shadowed),
        broken=tuple(broken),
        categories={name: words for name, words in categories.items() if words},
    )


def _files(folder: str, category: str, depth: int) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yields SKILL.md and category files below a folder, sorted by path."""
    try:
        with os.scandir(folder) as found:
            inner = sorted(found, key=lambda each: each.name)
    except OSError:
        return
    for each in inner:
        if each.name == CATEGORY_FILE:
            if category and (stat := _stat(each.path)):
                yield each.path, category, stat
        elif each.name.startswith(".") or each.name in _SKIPPED or not each.is_dir():
            continue
        elif stat := _stat(main := f"{each.path}/{MAIN}"):
            yield main, category, stat
        elif depth < DEEPEST:
            below = f"{category}/{each.name}" if category else each.name
            yield from _files(each.path, below, depth + 1)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - called for every file at every start
    except OSError:
        return None


def _read_changed(path: str, stat: os.stat_result, before: _Seen | None) -> _Seen:
    """Returns the skill or an error; for a category file, its description."""
    if before and (before.modified_ns, before.size) == (stat.st_mtime_ns, stat.st_size):
        return before
    skill, words, is_category = None, "", path.endswith(CATEGORY_FILE)
    try:
        text = Path(path).read_text(encoding="utf-8")
        if is_category:
            fields = read_frontmatter(split_frontmatter(text)[0])
            words = " ".join(str(fields.get("description", "")).split())
        elif len(text) > MOST_CHARS:
            words = f"The skill is longer than {MOST_CHARS} characters."
        else:
            skill = parse_skill(text)[0]
    except UsageError as error:
        words = "" if is_category else str(error)
    except (OSError, UnicodeError) as error:
        words = f"The file cannot be read ({error})."
    return _Seen(modified_ns=stat.st_mtime_ns, size=stat.st_size, skill=skill, words=words)


class SkillEnvironment(Value):
    """What decides whether a skill applies to a session: surface, system, tools, disabled
    skills."""

    platform: str = "cli"
    system: str = "linux"
    tools: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def disabled_names(
    everywhere: Sequence[str], by_platform: Mapping[str, Sequence[str]], platform: str
) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*everywhere, *by_platform.get(platform, ()))))


def is_available(entry: SkillEntry, here: SkillEnvironment) -> bool:
    """Returns whether the skill can be used in this session."""
    return entry.name not in here.disabled and entry.skill.runs_on(here.system)


def is_indexed(entry: SkillEntry, here: SkillEnvironment) -> bool:
    """Returns whether the prompt lists the skill."""
    conditions, tools, toolsets = entry.skill.conditions, set(here.tools), set(here.toolsets)
    return (
        is_available(entry, here)
        and tools.issuperset(conditions.requires_tools)
        and toolsets.issuperset(conditions.requires_toolsets)
        and tools.isdisjoint(conditions.fallback_for_tools)
        and toolsets.isdisjoint(conditions.fallback_for_toolsets)
    )


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


def index_text(
    entries: Sequence[SkillEntry],
    here: SkillEnvironment,
    *,
    most_chars: int,
    recent: Recent = tuple,
) -> str:
    """Returns the index, at most `most_chars` long in characters, bytes or tokens; "" when
    nothing is shown or fits. `recent` names skills by last use: they come first when space is
    short."""
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
    """Interleaves the categories, so that every kind of task stays listed."""
    seen: Counter[str] = Counter()
    places: list[int] = []
    for entry in entries:
        places.append(seen[entry.category])
        seen[entry.category] += 1
    return [entries[n] for n in sorted(range(len(entries)), key=places.__getitem__)]


def _size(text: str) -> int:
    """Returns the size in characters of plain English; digits, signs and other scripts weigh
    more. The list consists of names, for which `estimate_tokens` is too low by half."""
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
    """Formats one skill for the index."""
    # A description must not close the list.
    words = skill.description.replace("<", "‹").replace(">", "›")
    short = words if len(words) <= LONGEST_LINE else words[: LONGEST_LINE - 1].rstrip() + "…"
    return f"- {skill.name}: {short}"
