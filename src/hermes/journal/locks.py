"""Advisory file locks: the kernel queues those who wait and releases what a dead process held."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WriteLock:
    """Only one process at a time is inside; entered by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @contextmanager
    def held(self, *, wait: bool = True) -> Iterator[bool]:
        """Whether we are inside; without `wait` not when another process is."""
        if self._fd < 0:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Owner:
    """The name under which this process owns sessions, and the lock file that proves it lives."""

    def __init__(self, folder: Path) -> None:
        # Not from the world: two processes that replay the same seed are still two.
        self.name = f"{os.getpid()}-{os.urandom(6).hex()}"
        self.folder = folder
        self._fd = -1

    @property
    def is_proven(self) -> bool:
        return self._fd >= 0

    def prove(self) -> None:
        """Hold the lock file from now on; files of the dead are swept away."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.folder.glob("*.lock"):
            is_alive(self.folder, path.stem)
        path = self.folder / f"{self.name}.lock"
        while self._fd < 0:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Somebody who sweeps may have removed the file before it was locked.
            if path.exists() and path.stat().st_ino == os.fstat(fd).st_ino:
                self._fd = fd
            else:
                os.close(fd)

    def leave(self) -> None:
        if self._fd >= 0:
            (self.folder / f"{self.name}.lock").unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the process behind the name holds its lock file; one that nobody holds is removed."""
    path = folder / f"{owner}.lock"
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(fd)
