"""Finds skills and decides in which sessions they apply."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
    """A skill in one of the roots."""

    skill: Skill
    folder: str
    # Path between its root and its folder.
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
    """The skills in all roots. The first of several skills of one name counts."""

    entries: tuple[SkillEntry, ...] = ()
    # Later skills of the same name; they are addressed by folder.
    shadowed: tuple[SkillEntry, ...] = ()
    broken: tuple[BrokenSkill, ...] = ()
    # Descriptions by category.
    categories: dict[str, str] = {}

    def find(self, name: str) -> SkillEntry | None:
        return next((entry for entry in self.entries if entry.name == name), None)


class _Seen(Value, array_like=True):
    """The cached content of a file. `note` is the description of a category, or the problem of a
    skill."""

    modified_ns: int
    size: int
    skill: Skill | None = None
    note: str = ""


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
        """Scan the roots and return the result: the same object while nothing has changed."""
        known = self._load() if self._known is None else self._known
        files = [
            (path, category, root.kind, _read_changed(path, stat, known.get(path)))
            for root in self._roots
            for path, category, stat in _files(root.path, "", 0)
        ]
        seen = {path: file for path, _, _, file in files}
        if self._last is None or seen != known:
            if seen != known and self._persist:
                data = encode(_Snapshot(version=SNAPSHOT_VERSION, files=seen))
                # Without the cache the next start reads the files again.
                with suppress(OSError):
                    replace_file(self._cache, data, durable=False)
            self._known, self._last = seen, _build_result(files)
        return self._last

    def _load(self) -> dict[str, _Seen]:
        try:
            snapshot = decode(_Snapshot, self._cache.read_bytes())
        except (OSError, DecodeError):
            return {}
        return snapshot.files if snapshot.version == SNAPSHOT_VERSION else {}


def _build_result(files: Sequence[tuple[str, str, RootKind, _Seen]]) -> SkillScan:
    """Build the result; earlier roots take precedence."""
    entries: dict[str, SkillEntry] = {}
    shadowed: list[SkillEntry] = []
    broken: list[BrokenSkill] = []
    categories: dict[str, str] = {}
    for path, category, kind, file in files:
        folder = os.path.dirname(path)  # noqa: PTH120 - called for every file at every start
        if path.endswith(CATEGORY_FILE):
            categories.setdefault(category, file.note)
        elif file.skill is None:
            broken.append(BrokenSkill(folder=folder, problem=file.note))
        else:
            entry = SkillEntry(skill=file.skill, folder=folder, category=category, kind=kind)
            if entries.setdefault(entry.name, entry) is not entry:
                shadowed.append(entry)
    return SkillScan(
        entries=tuple(sorted(entries.values(), key=lambda each: (each.category, each.name))),
        shadowed=tuple(shadowed),
        broken=tuple(broken),
        categories={name: about for name, about in categories.items() if about},
    )


def _files(folder: str, category: str, depth: int) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield SKILL.md and category files below a folder, sorted by path."""
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
    """Return the skill or an error; for a category file, its description."""
    if before and (before.modified_ns, before.size) == (stat.st_mtime_ns, stat.st_size):
        return before
    skill, note, is_category = None, "", path.endswith(CATEGORY_FILE)
    try:
        text = Path(path).read_text(encoding="utf-8")
        if is_category:
            fields = read_frontmatter(split_frontmatter(text)[0])
            note = " ".join(str(fields.get("description", "")).split())
        elif len(text) > MOST_CHARS:
            note = f"The skill is longer than {MOST_CHARS} characters."
        else:
            skill = parse_skill(text)[0]
    except UsageError as error:
        note = "" if is_category else str(error)
    except (OSError, UnicodeError) as error:
        note = f"The file cannot be read ({error})."
    return _Seen(modified_ns=stat.st_mtime_ns, size=stat.st_size, skill=skill, note=note)


class SkillEnvironment(Value):
    """What decides whether a skill applies to a session."""

    # The surface.
    platform: str = "cli"
    # The operating system.
    system: str = "linux"
    tools: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    # Names of disabled skills.
    disabled: tuple[str, ...] = ()


def disabled_names(
    everywhere: Sequence[str], by_platform: Mapping[str, Sequence[str]], platform: str
) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*everywhere, *by_platform.get(platform, ()))))


def is_available(entry: SkillEntry, here: SkillEnvironment) -> bool:
    """Return whether the skill can be used in this session."""
    return entry.name not in here.disabled and entry.skill.runs_on(here.system)
