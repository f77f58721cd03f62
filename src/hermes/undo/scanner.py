"""Scans trees of files quickly: known and unchanged entries are reused."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping

from hermes.undo.coverage import Coverage, inside, name_of, size_words
from hermes.undo.entry import Manifest, PathEntry, entry_of


class ScanResult:
    """The result of a scan. `gaps` says, by path, what is not covered and why; `sealed` folders
    could not be opened, so their known content stays. `large` are recreatable folders that contain
    too much; `new` is what was not known in this state."""

    def __init__(self) -> None:
        self.entries: Manifest = {}
        self.gaps: dict[str, str] = {}
        self.sealed: set[str] = set()
        self.large: set[str] = set()
        self.new: list[str] = []


class TooManyFiles(Exception):
    """There are more files below this folder than the limit."""


class TreeScanner:
    """One scan. `names` are paths that a command names: they are covered whatever they are called.
    `large` are folders that need not be counted again. `entering` is called with every folder
    before it is scanned."""

    def __init__(
        self,
        cover: Coverage,
        known: Mapping[str, PathEntry],
        *,
        now_ns: int,
        names: Iterable[str] = (),
        large: Iterable[str] = (),
        entering: Callable[[str], None] | None = None,
    ) -> None:
        self._cover = cover
        self._known = known
        self._now = now_ns
        self._names = tuple(names)
        self._large = frozenset(large)
        self._entering = entering
        self.look = ScanResult()

    def scan_tree(self, top: str) -> None:
        """Scan a folder with everything in it."""
        if top in self._cover.untouched:
            self.look.gaps[top] = f"{top} as a whole is not covered, only what a command names."
            return
        self._add(top)
        try:
            self._below(top, self._cover.max_files, self.look.entries)
        except TooManyFiles:
            # A partial scan would look like a loss of the rest.
            for path in [p for p in self.look.entries if inside(p, top)]:
                del self.look.entries[path]
            self._keep_known(top, self.look.entries)
            self.look.gaps[top] = (
                f"{top} contains more than {self._cover.max_files:,} files; "
                "only what a command names is covered."
            )

    def scan_named(self, path: str, *, again: bool = False) -> None:
        """Scan a path that a command names, with everything in it."""
        if (path in self.look.entries and not again) or path in self._cover.untouched:
            return
        self._add(path)
        entry = self.look.entries.get(path)
        if entry is not None and entry.is_folder:
            try:
                self._below(path, self._cover.max_files, self.look.entries)
            except TooManyFiles:
                self.look.gaps[path] = f"{path} contains more than {self._cover.max_files:,} files."

    def scan_spot(self, path: str) -> None:
        """Scan a path alone, without its content."""
        if path not in self.look.entries:
            self._add(path)

    def _add(self, path: str) -> None:
        try:
            found = os.lstat(path)
        except OSError:
            return
        self.look.entries[path] = self._entry(path, found)

    def _entry(self, path: str, found: os.stat_result) -> PathEntry:
        known = self._known.get(path)
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
        self.look.new.append(path)
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
                self._seal(folder, out)
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
        if path in self._cover.skipped:
            del out[path]
            return False
        if name_of(path) in self._cover.remade and not self._is_named(path):
            self._scan_recreatable(path, out)
            return False
        if found.st_dev != device:
            self.look.gaps[path] = f"{path} is another file system."
            return False
        return True

    def _scan_recreatable(self, folder: str, out: Manifest) -> None:
        """A recreatable folder is covered while it is small."""
        found: Manifest = {}
        if folder not in self._large:
            try:
                self._below(folder, self._cover.small_files, found)
                if sum(entry.weight for entry in found.values()) <= self._cover.small_bytes:
                    out.update(found)
                    return
            except (TooManyFiles, OSError):
                pass
            self._keep_known(folder, out)
        self.look.large.add(folder)
        self.look.gaps[folder] = f"{folder} can be recreated and is not covered."

    def _keep_known(self, folder: str, out: Manifest) -> None:
        """Keep following files that were covered while the folder was small."""
        prefix = folder + "/"
        for path in [p for p in self._known if p.startswith(prefix)]:
            try:
                out[path] = self._entry(path, os.lstat(path))
            except OSError:
                continue

    def _seal(self, folder: str, out: Manifest) -> None:
        self.look.sealed.add(folder)
        self.look.gaps[folder] = f"{folder} cannot be opened."
        prefix = folder + "/"
        out.update({p: e for p, e in self._known.items() if p.startswith(prefix)})

    def _is_named(self, folder: str) -> bool:
        return any(inside(name, folder) or inside(folder, name) for name in self._names)


def reason_not_stored(path: str, entry: PathEntry, cover: Coverage, *, named: bool) -> str:
    """Return why the content of a file will not be stored, or ""."""
    limit = cover.limit(path, named=named)
    if entry.is_file and entry.weight > limit:
        return f"{path} ({size_words(entry.weight)}) is larger than {size_words(limit)}."
    if not (entry.is_file or entry.is_folder or entry.is_link or stat.S_ISFIFO(entry.mode)):
        return f"{path} is a device or a socket."
    return ""
