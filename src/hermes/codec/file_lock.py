"""Advisory locks on files, for processes that must take turns."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

FIRST_WAIT_SECONDS = 0.001
LONGEST_WAIT_SECONDS = 0.05


class FileLock:
    """A lock that the kernel releases when its process dies. A forked child does not hold it. Not
    reentrant: each thread needs an object of its own. Missing folders are created, and the file
    stays open between two uses until `close`. Raises OSError when the file cannot be opened."""

    def __init__(self, path: Path, *, is_permanent: bool = False) -> None:
        self.path = path
        self.is_held = False
        # Nobody removes a permanent file, so there is no need to look for it.
        self._is_permanent = is_permanent
        self._fd = -1
        _locks.add(self)

    def acquire(self, timeout: float | None = None, *, shared: bool = False) -> bool:
        """Acquire the lock and return whether it is held. Wait forever without a timeout; 0 does
        not wait. Several processes may hold a `shared` lock at once, but not while another holds an
        exclusive one."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        ends = None if timeout is None else time.monotonic() + timeout
        while not self.is_held:
            if not self._lock(kind, ends):
                return False
            # Another process may have removed the file between opening and locking it.
            self.is_held = self._is_permanent or self._is_at_path()
            if not self.is_held:
                self.close()
        return True

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def remove(self) -> None:
        """Delete the file of a lock that is held, and release the lock."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Release the lock and close the file."""
        self.release()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @contextmanager
    def hold(self, timeout: float | None = None) -> Iterator[bool]:
        """Hold the lock inside the block; False when it was not free in time."""
        is_held = self.acquire(timeout)
        try:
            yield is_held
        finally:
            self.release()

    def _lock(self, kind: int, ends: float | None) -> bool:
        if self._fd < 0:
            self._fd = self._open()
        if ends is None:
            fcntl.flock(self._fd, kind)
            return True
        wait = FIRST_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                left = ends - time.monotonic()
                if left <= 0:
                    return False
            time.sleep(min(wait, left))
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def _is_at_path(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._fd))  # noqa: PTH116
        except FileNotFoundError:
            return False

    def _forget(self) -> None:
        """Drop the lock in a forked child. Closing the copy of the descriptor leaves the parent's
        lock alone; unlocking it would not."""
        self.is_held = False
        self.close()


@contextmanager
def hold_lock(path: Path, timeout: float | None = None) -> Iterator[bool]:
    """Hold the lock of a file inside the block; False when it was not free in time."""
    lock = FileLock(path)
    try:
        yield lock.acquire(timeout)
    finally:
        lock.close()


def _forget_all() -> None:
    for lock in _locks:
        lock._forget()


_locks: WeakSet[FileLock] = WeakSet()
os.register_at_fork(after_in_child=_forget_all)
