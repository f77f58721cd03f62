"""Records child processes and kills those whose owner died."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.workspaces.process_tree import identity


class ChildRecord(Value):
    """A child and its owner with their identities, because pids are reused. An identity is None
    when the process has already ended."""

    pid: int
    began: str | None
    owner: int
    owner_began: str | None


class ChildRegistry:
    """The running children of a home's processes, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, pid: int) -> None:
        owner = os.getpid()
        child = ChildRecord(pid=pid, began=identity(pid), owner=owner, owner_began=identity(owner))
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / str(pid)).write_bytes(encode(child))

    def forget(self, pid: int) -> None:
        with contextlib.suppress(OSError):
            (self._folder / str(pid)).unlink(missing_ok=True)

    def kill_orphans(self) -> int:
        """Kills orphaned children; returns their number."""
        killed = 0
        for file in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            try:
                child = decode(ChildRecord, file.read_bytes())
            except (OSError, DecodeError):
                continue
            if child.owner_began and identity(child.owner) == child.owner_began:
                continue
            if child.began and identity(child.pid) == child.began:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
                    killed += 1
            self.forget(child.pid)
        return killed
