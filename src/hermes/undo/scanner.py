"""Scans trees of files quickly, within limits: known and unchanged entries are reused."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hermes.codec.values import Value
from hermes.undo.entry import Manifest, PathEntry, entry_of

MB = 1024 * 1024

# Created by installing, building or running; their names say so in every project.
REMADE = frozenset(
    """node_modules bower_components .venv venv .virtualenv __pycache__ .tox .nox .eggs
    .mypy_cache .pytest_cache .ruff_cache .hypothesis .gradle .terraform .next .nuxt .parcel-cache
    .turbo .svelte-kit .dart_tool .cache target build dist out obj .build _build cmake-build-debug
    cmake-build-release Pods DerivedData vendor .bundle .stack-work .cargo coverage htmlcov
    .worktrees""".split()
)
PACKS = "/.git/objects/pack/"
PACK_BYTES = 16 * MB
# A folder that can be recreated is covered up to this size.
SMALL_FILES = 400
SMALL_BYTES = 8 * MB


class UndoLimits(Value):
    """Which files undo covers, and how much it keeps."""

    max_files: int = 50_000
    max_file_bytes: int = 100 * MB  # for a file that the command does not name
    max_total_bytes: int = 2_000 * MB
    # Names of folders that are covered while they are small, or when a command names them.
    remade: frozenset[str] = REMADE
    skipped: frozenset[str] = frozenset()  # paths of Hermes itself
    untouched: frozenset[str] = frozenset(("/",))  # folders that are not covered as a whole
    max_snapshots: int = 20  # turns that are kept per project
    retention_days: float = 7

    @property
    def named_file_bytes(self) -> int:
        """The largest file that is covered when the command names it."""
        return max(self.max_file_bytes, self.max_total_bytes // 2)

    @property
    def least_limit(self) -> int:
        """A file up to this size is stored whatever its name is."""
        return min(PACK_BYTES, self.max_file_bytes)

    def limit(self, path: str, *, named: bool) -> int:
        if named:
            return self.named_file_bytes
        return self.least_limit if PACKS in path else self.max_file_bytes


def inside(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder.rstrip("/") + "/")


def size_words(size: int) -> str:
    for unit, amount in (("GB", 1024 * MB), ("MB", MB), ("kB", 1024)):
        if size >= amount:
            return f"{size / amount:.1f} {unit}".replace(".0 ", " ")
    return f"{size} bytes"


class TooManyFiles(Exception):
    """There are more files below this folder than the limit."""


class TreeScanner:
    """One scan and its result. `entering` is called with every folder before it is scanned."""

    def __init__(
        self,
        limits: UndoLimits,
        known: Mapping[str, PathEntry],
        *,
        now_ns: int,
        names: Iterable[str] = (),
        known_large: Iterable[str] = (),
        entering: Callable[[str], None] | None = None,
    ) -> None:
        self._limits = limits
        self._known = known
        self._now = now_ns
        # Paths that a command names: they are covered whatever they are called.
        self._names = tuple(names)
        self._known_large = frozenset(known_large)  # folders that need not be counted again
        self._entering = entering
        self.entries: Manifest = {}
        self.gaps: dict[str, str] = {}  # what is not covered, by path, and why
        self.large: set[str] = set()  # recreatable folders that contain too much
        self.new: list[str] = []  # what was not known in this state

    def scan_tree(self, top: str) -> None:
        """Scan a folder with everything in it."""
        if top in self._limits.untouched:
            self.gaps[top] = f"{top} as a whole is not covered, only what a command names."
            return
        self._add(top)
        try:
            self._below(top, self._limits.max_files, self.entries)
        except TooManyFiles:
            # A partial scan would look like a loss of the rest.
            for path in [p for p in self.entries if inside(p, top)]:
                del self.entries[path]
            self._keep_known(top, self.entries)
            self.gaps[top] = (
                f"{top} contains more than {self._limits.max_files:,} files; "
                "undo covers only the paths that a command names."
            )

    def scan_named(self, path: str, *, again: bool = False) -> None:
        """Scan a path that a command names, with everything in it."""
        if (path in self.entries and not again) or path in self._limits.untouched:
            return
        self._add(path)
        entry = self.entries.get(path)
        if entry is not None and entry.is_folder:
            try:
                self._below(path, self._limits.max_files, self.entries)
            except TooManyFiles:
                self.gaps[path] = f"{path} contains more than {self._limits.max_files:,} files."

    def scan_spot(self, path: str) -> None:
        """Scan a path alone, without its content."""
        if path not in self.entries:
            self._add(path)

    def _add(self, path: str) -> None:
        try:
            found = os.lstat(path)
        except OSError:
            return
        self.entries[path] = self._entry(path, found)

    def _entry(self, path: str, found: os.stat_result) -> PathEntry:
        known = self._known.get(path)
        # Not `has_stamp`: a call per file is noticeable in a large project.
        if (
            known is not None
            and not known.fresh
            and known.changed == found.st_ctime_ns
            and known.modified == found.st_mtime_ns
            and known.size == found.st_size
            and known.inode == found.st_ino
            and known.mode == found.st_mode
        ):
            return known
        self.new.append(path)
        return entry_of(path, found, self._now)

    def _below(self, top: str, most: int, out: Manifest) -> None:
        folders = [top]
        device = os.lstat(top).st_dev
        while folders:
            folder = folders.pop()
            if self._entering is not None:
                self._entering(folder)
            try:
                entries = os.scandir(folder)
            except OSError:
                # Its known content stays.
                self.gaps[folder] = f"{folder} cannot be opened."
                out.update({p: e for p, e in self._known.items() if p.startswith(f"{folder}/")})
                continue
            with entries:
                for each in entries:
                    path = each.path
                    try:
                        found = each.stat(follow_symlinks=False)
                        out[path] = self._entry(path, found)
                    except OSError:
                        continue
                    if stat.S_ISDIR(found.st_mode) and self._enters(path, found, device, out):
                        folders.append(path)
            if len(out) > most:
                raise TooManyFiles

    def _enters(self, path: str, found: os.stat_result, device: int, out: Manifest) -> bool:
        if path in self._limits.skipped:
            del out[path]
            return False
        if posixpath.basename(path) in self._limits.remade and not any(
            inside(name, path) or inside(path, name) for name in self._names
        ):
            self._scan_recreatable(path, out)
            return False
        if found.st_dev != device:
            self.gaps[path] = f"{path} is another file system."
            return False
        return True

    def _scan_recreatable(self, folder: str, out: Manifest) -> None:
        """Scan a recreatable folder, which is covered while it is small."""
        found: Manifest = {}
        if folder not in self._known_large:
            try:
                self._below(folder, SMALL_FILES, found)
                if sum(entry.weight for entry in found.values()) <= SMALL_BYTES:
                    out.update(found)
                    return
            except (TooManyFiles, OSError):
                pass
            self._keep_known(folder, out)
        self.large.add(folder)
        self.gaps[folder] = f"{folder} can be recreated and is not covered."

    def _keep_known(self, folder: str, out: Manifest) -> None:
        """Keep following files that were covered while the folder was small."""
        prefix = folder + "/"
        for path in [p for p in self._known if p.startswith(prefix)]:
            try:
                out[path] = self._entry(path, os.lstat(path))
            except OSError:
                continue


def reason_not_stored(path: str, entry: PathEntry, limits: UndoLimits, *, named: bool) -> str:
    """Return why the content of a file will not be stored, or ""."""
    limit = limits.limit(path, named=named)
    if entry.is_file and entry.weight > limit:
        return f"{path} ({size_words(entry.weight)}) is larger than {size_words(limit)}."
    if not (entry.is_file or entry.is_folder or entry.is_link or stat.S_ISFIFO(entry.mode)):
        return f"{path} is a device or a socket."
    return ""


def missing_folders(path: str) -> list[str]:
    """Return the missing folders on the way to a path, outermost first."""
    return [str(each) for each in reversed(Path(path).parents) if not os.path.lexists(each)]


def is_scannable(path: str) -> bool:
    """Return whether the path is neither a folder of the system, nor the whole folder for temporary
    files, nor behind a link, whose target is scanned instead."""
    if path.count("/") < 2 or path.startswith(("/proc/", "/sys/", "/dev/")):
        return False
    folder = posixpath.dirname(path)
    return os.path.realpath(folder) == folder
