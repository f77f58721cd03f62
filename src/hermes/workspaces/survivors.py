"""Ends what the foreground commands of a killed Hermes left running.

Every running command has a record, and its processes carry the token of the record in their
environment. A watchdog process notices the death of Hermes at once; where it was killed too, the
next session finds the records."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.workspaces.child import dup2_action, open_action, spawn
from hermes.workspaces.files import find_program
from hermes.workspaces.process_tree import (
    ProcessIdentity,
    find_by_environment,
    identity,
    kill_all,
    list_members,
)
from hermes.workspaces.shell_state import MARKER

# The folder of the records, beside the folders of sessions.
RECORDS = ".commands"
_RUNNING, _ENDED = "running-", "ended-"
_ROUNDS = 20
_PAUSE_SECONDS = 0.01
_SHOWN_CHARACTERS = 200
_REMOTE_SECONDS = 60.0
# Reports for sessions that are not resumed.
_KEPT_SECONDS = 7 * 86_400


class RemoteCommand(Value):
    """How to end a command on a remote machine: `argv` is a local program that runs a line of bash
    there, which it reads from stdin up to a NUL. Without `argv`, only a session can do it."""

    line: str
    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}


class CommandRecord(Value):
    """A foreground command. `state` is the folder of its session; `pid` is 0 until it is known, and
    for a remote command."""

    token: str
    state: str
    script: str
    owner: int
    owner_identity: str
    pid: int = 0
    identity: str = ""
    # The number of processes that were ended after the death of Hermes.
    ended: int = 0
    remote: RemoteCommand | None = None

    @property
    def is_abandoned(self) -> bool:
        return identity(self.owner) != self.owner_identity


class CommandRecords:
    """The records of a home. `state` is the folder of the session that runs commands."""

    def __init__(self, folder: Path, state: Path, search_path: str = os.defpath) -> None:
        self._folder = folder
        self._state = str(state)
        self._search_path = search_path

    def add(
        self, script: str, remote: Callable[[str], RemoteCommand] | None = None
    ) -> CommandRecord:
        """Record a command before it starts; `remote` gets its token."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        process_watchdog(os.getpid()).watch(self._folder, self._search_path)
        token = os.urandom(12).hex()
        record = CommandRecord(
            token=token,
            state=self._state,
            script=script[:_SHOWN_CHARACTERS],
            owner=os.getpid(),
            owner_identity=_own_identity(os.getpid()),
            remote=remote(token) if remote else None,
        )
        self._write(record)
        return record

    def started(self, record: CommandRecord, pid: int) -> None:
        self._write(replace(record, pid=pid, identity=identity(pid) or ""))

    def remove(self, record: CommandRecord) -> None:
        with contextlib.suppress(OSError):
            os.unlink(f"{self._folder}/{_RUNNING}{record.token}")  # noqa: PTH108

    def find_abandoned_remote(self) -> list[CommandRecord]:
        """Return the remote commands of this session whose Hermes has died."""
        found = (record for _, record in _read_all(self._folder, _RUNNING))
        own = (one for one in found if one.remote is not None and one.state == self._state)
        return [one for one in own if one.is_abandoned]

    def set_ended(self, record: CommandRecord, count: int) -> None:
        """Store how many processes of an abandoned command were ended, for `take_reports`."""
        _store_ended(self._folder, replace(record, ended=record.ended + count))

    def take_reports(self) -> list[str]:
        """Return what was ended of earlier commands of this session, once."""
        lines = []
        for file, record in _read_all(self._folder, _ENDED):
            if record.state == self._state:
                file.unlink(missing_ok=True)
                lines.append(_report(record))
        return lines

    def _write(self, record: CommandRecord) -> None:
        # Not durable: after a crash of the machine nothing runs. Without space on the disk, the
        # watchdog misses this command.
        with (
            contextlib.suppress(OSError),
            open(f"{self._folder}/{_RUNNING}{record.token}", "wb") as file,  # noqa: PTH123
        ):
            file.write(encode(record))


def _report(record: CommandRecord) -> str:
    shown = record.script if len(record.script) < _SHOWN_CHARACTERS else f"{record.script}…"
    what = "it was no longer running"
    if record.ended:
        count = "1 process" if record.ended == 1 else f"{record.ended} processes"
        what = f"{count} that it had left running were ended"
    return f"[Hermes was stopped while this command ran; {what}: {shown}]"


def end_abandoned(folder: Path, *, remote: bool = False) -> list[CommandRecord]:
    """End the processes of commands whose Hermes has died, and return those that had any. With
    `remote`, also on other machines, as far as these are reachable."""
    if not folder.is_dir():
        return []
    found = []
    for _, record in _read_all(folder, _RUNNING):
        if not record.is_abandoned:
            continue
        if record.remote is None:
            count = end_marked(record.token, pid=record.pid, pid_identity=record.identity)
        elif not remote or (count := _end_remotely(record.remote)) < 0:
            continue
        record = replace(record, ended=record.ended + count)
        _store_ended(folder, record)
        if record.ended:
            found.append(record)
    _forget_old(folder)
    return found


def _store_ended(folder: Path, record: CommandRecord) -> None:
    file = folder / f"{_RUNNING}{record.token}"
    with contextlib.suppress(OSError):
        # Written first: a report may be lost, but never given twice.
        file.write_bytes(encode(replace(record, remote=None)))
        file.rename(folder / f"{_ENDED}{record.token}")


def _end_remotely(remote: RemoteCommand) -> int:
    """Return how many processes were ended, or -1 if the machine could not be reached."""
    if not remote.argv:
        return -1
    raw = remote.line.encode("utf-8", "surrogateescape") + b"\0"
    with contextlib.suppress(OSError, subprocess.TimeoutExpired, ValueError):
        done = subprocess.run(
            remote.argv,
            env=remote.env,
            input=raw,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_REMOTE_SECONDS,
            check=False,
        )
        return int(done.stdout)
    return -1


def end_marked(token: str, *, pid: int = 0, pid_identity: str = "") -> int:
    """Kill the processes that carry the token, and the tree of `pid`, until none is left. Return
    how many there were."""
    killed: set[ProcessIdentity] = set()
    for _ in range(_ROUNDS):
        alive = _find_processes(token, pid, pid_identity)
        if not alive:
            break
        # What is stopped starts nothing more.
        kill_all(alive)
        killed.update(alive)
        time.sleep(_PAUSE_SECONDS)
    return len({one.pid for one in killed})


def _find_processes(token: str, pid: int, pid_identity: str) -> list[ProcessIdentity]:
    found = {one.pid: one for one in find_by_environment(f"{MARKER}={token}")}
    # A program may clear its environment. A pid is not used again while its session has members.
    if pid and identity(pid) in (None, pid_identity):
        found |= {one.pid: one for one in list_members(pid)}
    return list(found.values())


def _read_all(folder: Path, prefix: str) -> list[tuple[Path, CommandRecord]]:
    found = []
    try:
        names = [name for name in os.listdir(folder) if name.startswith(prefix)]  # noqa: PTH208
    except OSError:
        return []
    for name in names:
        with contextlib.suppress(OSError, DecodeError):
            file = folder / name
            found.append((file, decode(CommandRecord, file.read_bytes())))
    return found


def _forget_old(folder: Path) -> None:
    for file, _ in _read_all(folder, _ENDED):
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > _KEPT_SECONDS:
                file.unlink()


@lru_cache(maxsize=1)
def _own_identity(pid: int) -> str:
    return identity(pid) or ""


# Waits for the end of its input, which Hermes holds open while it lives, and reads the folders of
# records from it.
_WATCHDOG = """folders=()
trap '' INT HUP TERM
while IFS= read -r -d '' folder; do folders+=("$folder"); done
for folder in "${folders[@]}"; do
  for file in "$folder"/running-*; do
    [[ -e $file ]] && exec "$@" "${folders[@]}"
  done
done
"""
_END_ALL = (
    "import sys; sys.path[:] = sys.argv[1].split('\\n'); from pathlib import Path; "
    "from hermes.workspaces.survivors import end_abandoned; "
    "[end_abandoned(Path(folder), remote=True) for folder in sys.argv[2:]]"
)


class Watchdog:
    """A small process that outlives this one and ends what it left running."""

    def __init__(self) -> None:
        self._folders: set[Path] = set()
        self._descriptor = -1

    def watch(self, folder: Path, search_path: str) -> None:
        if folder in self._folders:
            return
        self._folders.add(folder)
        with contextlib.suppress(OSError):
            if self._descriptor < 0:
                self._descriptor = self._start(search_path)
            os.write(self._descriptor, os.fsencode(folder) + b"\0")

    def _start(self, search_path: str) -> int:
        reading, writing = os.pipe()
        program = find_program("bash", search_path) or "/bin/bash"
        python = (sys.executable, "-c", _END_ALL, "\n".join(sys.path))
        argv = ("bash", "--norc", "--noprofile", "-c", _WATCHDOG, "hermes-watchdog", *python)
        actions = [
            dup2_action(reading, 0),
            open_action(1, os.devnull, os.O_WRONLY),
            open_action(2, os.devnull, os.O_WRONLY),
        ]
        try:
            spawn(program, argv, {"PATH": os.defpath}, actions)
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        return writing


@lru_cache(maxsize=1)
def process_watchdog(pid: int) -> Watchdog:
    """Return the watchdog of this process; a forked one gets its own."""
    return Watchdog()
