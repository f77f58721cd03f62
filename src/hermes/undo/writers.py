"""Finds files that processes outside the agent have open for writing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from hermes.undo.changes import FileId

PROC = Path("/proc")
MOST_DESCRIPTORS = 20_000


def list_pids() -> frozenset[int]:
    """Return all pids; empty without /proc."""
    try:
        return frozenset(int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208
    except OSError:
        return frozenset()


def open_for_writing(pids: Collection[int], wanted: Collection[FileId]) -> set[FileId]:
    """Return those of the wanted files that one of the processes has open for writing."""
    found: set[FileId] = set()
    if not wanted:
        return found
    looked = 0
    for pid in pids:
        for name in _descriptors(pid):
            looked += 1
            place = _descriptor_file(pid, name)
            if place in wanted and place not in found and _is_writable(pid, name):
                found.add(place)
        if looked > MOST_DESCRIPTORS:
            break
    return found


def _descriptors(pid: int) -> Iterator[str]:
    try:
        yield from os.listdir(PROC / str(pid) / "fd")  # noqa: PTH208
    except OSError:
        return


def _descriptor_file(pid: int, name: str) -> FileId:
    try:
        found = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _is_writable(pid: int, name: str) -> bool:
    try:
        text = Path(f"/proc/{pid}/fdinfo/{name}").read_text()
    except OSError:
        return False
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
