"""Finds files that are another name of a credential or of our own state, by their inode."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes.policy.places import stores

MOST_FILES = 2000
_DEEPEST = 2
Inode = tuple[int, int]


def special(path: str) -> str:
    """What the thing at a path is if it is neither file nor folder, or nothing."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return ""
    for test, words in (
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a disk"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return words
    return ""


def twin(path: str, home: str, state: str) -> str:
    """The path of the credential or state file that this one is a hard link to, or nothing."""
    try:
        info = Path(path).stat()
    except (OSError, ValueError):
        return ""
    if info.st_nlink < 2 or not stat.S_ISREG(info.st_mode):
        return ""
    wanted = (info.st_dev, info.st_ino)
    for count, (other, inode) in enumerate(_guarded(home, state)):
        if count >= MOST_FILES:
            break
        if inode == wanted and os.path.realpath(other) != path:
            return other
    return ""


def _guarded(home: str, state: str) -> Iterator[tuple[str, Inode]]:
    names = [name for group in stores.HOME_FILES.values() for name in group]
    folders = [name for group in stores.HOME_FOLDERS.values() for name in group]
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
