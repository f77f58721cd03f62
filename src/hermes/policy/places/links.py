"""Finds hard links to credentials and to Hermes' own state, by inode."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from hermes.policy.places.places import lists

MOST_FILES = 2000
FRESH_SECONDS = 1.0
_DEEPEST = 2
Inode = tuple[int, int]


def describe_special(path: str) -> str:
    """Return what a path is if it is neither a file nor a folder, or ""."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return ""
    for test, description in (
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a disk"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return description
    return ""


class GuardedFiles:
    """Credentials and Hermes' own files by inode, refreshed after `FRESH_SECONDS`."""

    def __init__(self, home: str, state: str, now: Callable[[], float]) -> None:
        self._home = home
        self._state = state
        self._now = now
        self._read_at: float | None = None
        self._names: dict[Inode, str] = {}

    def twin(self, path: str) -> str:
        """Return the path of the guarded file that this one is a hard link to, or ""."""
        try:
            info = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            return ""
        if info.st_nlink < 2 or not stat.S_ISREG(info.st_mode):
            return ""
        other = self._inodes().get((info.st_dev, info.st_ino), "")
        return other if other and os.path.realpath(other) != path else ""

    def _inodes(self) -> dict[Inode, str]:
        now = self._now()
        if self._read_at is None or now - self._read_at >= FRESH_SECONDS:
            self._read_at = now
            found = islice(_guarded_files(self._home, self._state), MOST_FILES)
            self._names = {inode: path for path, inode in found}
        return self._names


def _guarded_files(home: str, state: str) -> Iterator[tuple[str, Inode]]:
    names = [name for group in lists().home_files.values() for name in group]
    folders = [name for group in lists().home_folders.values() for name in group]
    for name in names:
        yield from _inode(f"{home}/{name}")
    yield from _inside(state, 1)
    for name in folders:
        yield from _inside(f"{home}/{name}", _DEEPEST)
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers"):
        yield from _inode(path)


def _inside(folder: str, depth: int) -> Iterator[tuple[str, Inode]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if depth > 1:
                        yield from _inside(entry.path, depth - 1)
                elif entry.is_file(follow_symlinks=False):
                    info = entry.stat(follow_symlinks=False)
                    yield entry.path, (info.st_dev, info.st_ino)
    except OSError:
        return


def _inode(path: str) -> Iterator[tuple[str, Inode]]:
    try:
        info = Path(path).stat()
    except OSError:
        return
    yield path, (info.st_dev, info.st_ino)
