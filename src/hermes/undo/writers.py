"""Finds files that processes outside the agent have open for writing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from hermes.undo.changes import Place

PROC = Path("/proc")
MOST_DESCRIPTORS = 20_000


def running() -> frozenset[int]:
    """Return all pids; empty without /proc."""
    try:
        return frozenset(int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208
    except OSError:
        return frozenset()


def open_for_writing(pids: Collection[int], wanted: Collection[Place]) -> set[Place]:
    """Return those of the wanted files that one of the processes has open for writing."""
    found: set[Place] = set()
    if not wanted:
        return found
    looked = 0
    for pid in pids:
        for name in _descriptors(pid):
            looked += 1
            place = _place(pid, name)
            if place in wanted and place not in found and _writes(pid, name):
                found.add(place)
        if looked > MOST_DESCRIPTORS:
            break
    return found


def _descriptors(pid: int) -> Iterator[str]:
    try:
        yield from os.listdir(PROC / str(pid) / "fd")  # noqa: PTH208
    except OSError:
        return


def _place(pid: int, name: str) -> Place:
    try:
        found = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _writes(pid: int, name: str) -> bool:
    try:
        text = Path(f"/proc/{pid}/fdinfo/{name}").read_text()
    except OSError:
        return False
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY
