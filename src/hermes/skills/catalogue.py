"""Finds skills, decides where they apply and builds the prompt index."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import UsageError
from hermes.skills.skill import (
    MAIN,
    MOST_CHARS,
    READABLE,
    Skill,
    SkillConditions,
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
            (path, category, root.kind, _current(path, stat, known))
            for root in self._roots
            for path, category, stat in _files(root.path, "", 0)
        ]
        seen = {path: file for path, _, _, file in found}
        if self._last is None or seen != known:
            if seen != known and self._persist:
                self._save(seen)
            self._known, self._last = seen, _build_result(found)
        return self._last

    def _load(self) -> dict[str, _Seen]:
        try:
            snapshot = decode(_Snapshot, self._cache.read_bytes())
        except (OSError, DecodeError):
            return {}
        return snapshot.files if snapshot.version == SNAPSHOT_VERSION else {}

    def _save(self, seen: dict[str, _Seen]) -> None:
        data = encode(_Snapshot(version=SNAPSHOT_VERSION, files=seen))
        try:
            replace_file(self._cache, data, durable=False)
        except OSError:
            # Without the cache the next start reads the files again.
            return


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
    ordered = sorted(entries.values(), key=lambda each: (each.category, each.name))
    return SkillScan(
        entries=tuple(ordered),
        shadowed=tuple(shadowed),
        broken=tuple(broken),
        categories={name: words for name, words in categories.items() if words},
    )


def _files(folder: str, category: str, depth: int) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yields SKILL.md and category files below a folder, sorted by path."""
    try:
        with os.scandir(folder) as found:
            inner = sorted((each for each in found if _may_hold(each)), key=lambda each: each.name)
    except OSError:
        return
    for each in inner:
        if each.name == CATEGORY_FILE:
            if category and (stat := _stat(each.path)):
                yield each.path, category, stat
            continue
        main = f"{each.path}/{MAIN}"
        if stat := _stat(main):
            yield main, category, stat
        elif depth < DEEPEST:
            below = f"{category}/{each.name}" if category else each.name
            yield from _files(each.path, below, depth + 1)


def _may_hold(each: os.DirEntry[str]) -> bool:
    if each.name == CATEGORY_FILE:
        return True
    hidden = each.name.startswith(".") or each.name in _SKIPPED
    return not hidden and each.is_dir()


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - called for every file at every start
    except OSError:
        return None


def _current(path: str, stat: os.stat_result, known: dict[str, _Seen]) -> _Seen:
    before = known.get(path)
    if before and (before.modified_ns, before.size) == (stat.st_mtime_ns, stat.st_size):
        return before
    skill, words = _read(path)
    return _Seen(modified_ns=stat.st_mtime_ns, size=stat.st_size, skill=skill, words=words)


def _read(path: str) -> tuple[Skill | None, str]:
    """Returns the skill or an error; for a category file, its description."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if path.endswith(CATEGORY_FILE):
            fields = read_frontmatter(split_frontmatter(text)[0])
            return None, " ".join(str(fields.get("description", "")).split())
        if len(text) > MOST_CHARS:
            return None, f"The skill is longer than {MOST_CHARS} characters."
        return parse_skill(text)[0], ""
    except UsageError as error:
        return None, "" if path.endswith(CATEGORY_FILE) else str(error)
    except (OSError, UnicodeError) as error:
        return None, f"The file cannot be read ({error})."


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
    return is_available(entry, here) and _conditions_hold(entry.skill.conditions, here)


def _conditions_hold(conditions: SkillConditions, here: SkillEnvironment) -> bool:
    return (
        set(conditions.requires_tools) <= set(here.tools)
        and set(conditions.requires_toolsets) <= set(here.toolsets)
        and not set(conditions.fallback_for_tools) & set(here.tools)
        and not set(conditions.fallback_for_toolsets) & set(here.toolsets)
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
_PIECE = re.compile(
    r"[A-Za-z]{1,9}|[0-9]{1,3}|[\u00c0-\u1fff]{1,3}|-(?![A-Za-z])|[^\sA-Za-z0-9\u00c0-\u1fff-]|\n"
)
_CHARS_PER_PIECE = 4

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
    names = _text(shown, set(), hidden=0)
    if _size(names) <= most_chars:
        return _text(shown, _fitting_descriptions(by_use, most_chars - _size(names)), hidden=0)
    return _names_that_fit(by_use, most_chars)


def _interleave(entries: Sequence[SkillEntry]) -> list[SkillEntry]:
    """Interleaves the categories, so that every kind of task stays listed."""
    seen: dict[str, int] = {}
    places: list[int] = []
    for entry in entries:
        places.append(seen.get(entry.category, 0))
        seen[entry.category] = places[-1] + 1
    return [entries[n] for n in sorted(range(len(entries)), key=places.__getitem__)]


def _fitting_descriptions(by_use: Sequence[SkillEntry], space: int) -> set[str]:
    """Returns the skills whose descriptions fit into the remaining space."""
    found: set[str] = set()
    for entry in by_use:
        # Its name moves from the list to its own line.
        space -= _size(_line(entry)) + _CHARS_PER_PIECE
        if space < 0:
            break
        found.add(entry.name)
    return found


def _names_that_fit(by_use: Sequence[SkillEntry], most_chars: int) -> str:
    """Lists as many names as fit, and counts the rest."""
    low, high = 0, len(by_use)
    while low < high:
        middle = (low + high + 1) // 2
        if _size(_text(by_use[:middle], set(), hidden=len(by_use) - middle)) <= most_chars:
            low = middle
        else:
            high = middle - 1
    return _text(by_use[:low], set(), hidden=len(by_use) - low)


def _size(text: str) -> int:
    """Returns the size in characters of plain English; digits, signs and other scripts weigh
    more."""
    pieces = sum(1 for _ in _PIECE.finditer(text))
    return max(len(text.encode()), pieces * _CHARS_PER_PIECE)


def _text(entries: Sequence[SkillEntry], described: set[str], *, hidden: int) -> str:
    lines = [HEAD, OPENING]
    categories: dict[str, list[SkillEntry]] = {}
    for entry in sorted(entries, key=lambda each: (each.category, each.name)):
        categories.setdefault(entry.category or NO_CATEGORY, []).append(entry)
    for category, inner in categories.items():
        bare = ", ".join(entry.name for entry in inner if entry.name not in described)
        lines.append(f"{category}: {bare}".rstrip())
        lines += [_line(entry) for entry in inner if entry.name in described]
    if hidden:
        lines.append(f"+{hidden} more; {MORE}")
    return "\n".join((*lines, CLOSING))


def _line(entry: SkillEntry) -> str:
    return index_line(entry.name, entry.skill.description)


def index_line(name: str, description: str) -> str:
    """Formats one skill for the index."""
    # A description must not close the list.
    words = description.replace("<", "‹").replace(">", "›")
    short = words if len(words) <= LONGEST_LINE else words[: LONGEST_LINE - 1].rstrip() + "…"
    return f"- {name}: {short}"
