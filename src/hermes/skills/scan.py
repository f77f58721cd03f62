"""Finds skills below the root folders, with a cache keyed by file time and size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.codec.whole_files import replace_file
from hermes.core.errors import UsageError
from hermes.skills.frontmatter import read_frontmatter, split_frontmatter
from hermes.skills.skill import MAIN, MOST_CHARS, READABLE, Skill, parse_skill

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
    """Scans `roots`. Parsed files are cached in `cache` unless `kept` is False."""

    def __init__(self, roots: Sequence[SkillRoot], cache: Path, *, kept: bool = True) -> None:
        self._roots = roots
        self._cache = cache
        self._kept = kept
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
            if seen != known and self._kept:
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
