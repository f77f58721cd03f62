"""Inspects running processes and ends whole process trees."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hermes.codec.values import Value

PROC = Path("/proc")
LOOK_AGAIN_SECONDS = 0.01
KILL_SECONDS = 0.5


class ProcessIdentity(Value):
    """A process that has not ended. `identity` tells it from a later one with the same pid."""

    pid: int
    parent: int
    group: int
    session: int
    identity: str


def identity(pid: int) -> str | None:
    """Return the process that has this pid now, or None."""
    found = (
        _running(pid) if _has_proc() else next((r for r in scan_with_ps() if r.pid == pid), None)
    )
    return found.identity if found else None


def find_by_argument(argument: str) -> int:
    """Return the pid of a running process with this argument, or 0."""
    if not _has_proc():
        lines = (line.split(None, 1) for line in _ps("pid=", "args="))
        return next((int(pid) for pid, *words in lines if argument in "".join(words)), 0)
    for one in _scan_proc():
        with contextlib.suppress(OSError):
            raw = PROC.joinpath(str(one.pid), "cmdline").read_bytes()
            if argument in os.fsdecode(raw).split("\0"):
                return one.pid
    return 0


def find_by_environment(entry: str) -> list[ProcessIdentity]:
    """Return the running processes that were started with this environment entry. Where there is no
    /proc, none is found."""
    if not _has_proc():
        return []
    found, wanted = [], os.fsencode(entry)
    for one in _scan_proc():
        with contextlib.suppress(OSError):
            if wanted in PROC.joinpath(str(one.pid), "environ").read_bytes().split(b"\0"):
                found.append(one)
    return found


def list_members(root: int) -> list[ProcessIdentity]:
    """Return `root`, everything in its session or group, and all their descendants."""
    if root <= 1 or root == os.getpgrp():
        raise ValueError(f"{root} is not a process that was started here")
    table = {one.pid: one for one in (_scan_proc() if _has_proc() else scan_with_ps())}
    found = {pid for pid, one in table.items() if root in (pid, one.session, one.group)}
    while more := {p for p, one in table.items() if one.parent in found and p not in found}:
        found |= more
    return [table[pid] for pid in sorted(found - {os.getpid(), 1})]


def kill_now(root: int) -> list[ProcessIdentity]:
    """Kill the tree without waiting; return what was in it."""
    found: dict[int, ProcessIdentity] = {}
    # A stopped process starts nothing more, and stays the parent of its children.
    while fresh := [one for one in list_members(root) if one.pid not in found]:
        _signal(root, fresh, signal.SIGSTOP)
        found |= {one.pid: one for one in fresh}
    _kill(_alive(list(found.values())), signal.SIGKILL)
    return list(found.values())


def kill_all(processes: list[ProcessIdentity]) -> None:
    """Stop these processes, so that they start nothing more, and kill those that still exist."""
    _kill(_alive(processes), signal.SIGSTOP)
    _kill(_alive(processes), signal.SIGKILL)


async def end_tree(root: int, *, grace_seconds: float) -> None:
    """Terminate the tree and, after the grace period, kill it. Return when none of it runs."""
    tree: list[ProcessIdentity] = list_members(root)
    was = {one.pid: one.identity for one in tree}.get(root)
    try:
        if grace_seconds:
            _signal(root, tree, signal.SIGTERM)
            await _wait_until_gone(tree, grace_seconds)
    finally:
        # Kill what joined meanwhile, unless the pid belongs to another process by now.
        if identity(root) in (None, was):
            tree += kill_now(root)
        _kill(_alive(tree), signal.SIGKILL)
    await _wait_until_gone(tree, KILL_SECONDS)


async def _wait_until_gone(tree: list[ProcessIdentity], seconds: float) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while alive := _alive(tree):
        if loop.time() >= deadline:
            return False
        tree = alive
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return True


def _alive(tree: list[ProcessIdentity]) -> list[ProcessIdentity]:
    return [one for one in tree if identity(one.pid) == one.identity]


def _signal(root: int, tree: list[ProcessIdentity], number: signal.Signals) -> None:
    """Signal the group at once, so that no process can be born in between; then the others."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(root, number)
    _kill([one for one in tree if one.group != root], number)


def _kill(tree: list[ProcessIdentity], number: signal.Signals) -> None:
    for one in tree:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one.pid, number)


def _has_proc() -> bool:
    return PROC.joinpath("self/stat").exists()


def _scan_proc() -> Iterator[ProcessIdentity]:
    with os.scandir(PROC) as entries:
        names = [entry.name for entry in entries if entry.name.isdecimal()]
    for name in names:
        if found := _running(int(name)):
            yield found


def _running(pid: int) -> ProcessIdentity | None:
    try:
        raw = PROC.joinpath(str(pid), "stat").read_bytes()
    except OSError:
        return None
    # The second field is the name in parentheses, which may contain spaces and parentheses.
    state, parent, group, session, *rest = raw[raw.rindex(b")") + 2 :].split()
    if state in b"ZXx":
        return None
    return ProcessIdentity(
        pid=pid,
        parent=int(parent),
        group=int(group),
        session=int(session),
        identity=f"{_boot()}:{rest[15].decode()}",
    )


@lru_cache(maxsize=1)
def _boot() -> str:
    """Start times count from boot, so they need the boot id."""
    try:
        return PROC.joinpath("sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def scan_with_ps() -> Iterator[ProcessIdentity]:
    """Return the same table where there is no /proc; `ps` does not show sessions everywhere, but
    groups."""
    for line in _ps("pid=", "ppid=", "pgid=", "stat=", "lstart="):
        pid, parent, group, state, started = line.split(None, 4)
        if not state.startswith("Z"):
            yield ProcessIdentity(
                pid=int(pid), parent=int(parent), group=int(group), session=0, identity=started
            )


def _ps(*columns: str) -> list[str]:
    command = ["ps", "-A", *(part for column in columns for part in ("-o", column))]
    return subprocess.run(command, capture_output=True, check=False, text=True).stdout.splitlines()
