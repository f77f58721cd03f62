"""The name under which a process owns sessions, and the lock file that proves it is alive."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.codec.file_lock import FileLock


class LeaseOwner:
    """Holds a lock file named after itself while the process owns sessions."""

    def __init__(self, folder: Path) -> None:
        # Not from the world: two processes that replay the same seed are still two.
        self.name = f"{os.getpid()}-{os.urandom(6).hex()}"
        self.folder = folder
        self._lock = FileLock(folder / f"{self.name}.lock")

    @property
    def holds_lock(self) -> bool:
        return self._lock.is_held

    def hold_lock(self) -> None:
        """Hold the lock file from now on, and remove the files of dead processes."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.folder.glob("*.lock"):
            is_alive(self.folder, path.stem)
        self._lock.acquire()

    def release(self) -> None:
        if self._lock.is_held:
            self._lock.remove()


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the process of that name holds its lock file. A file that is not held is removed."""
    path = folder / f"{owner}.lock"
    if not path.exists():
        return False
    lock = FileLock(path)
    if not lock.acquire(timeout=0):
        lock.close()
        return True
    lock.remove()
    return False
