"""A file lock between the processes of a home; the system releases it when its holder dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hermes.config.home import Home, unwritable_error
from hermes.core.errors import ConfigError

PATIENCE_SECONDS = 15.0
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


class HomeLock:
    """Each holder opens the file separately, so the lock also excludes tasks and threads of this
    process. Waiting blocks no thread and uses real time."""

    def __init__(self, home: Home, path: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self._home = home
        self.path = path
        self._patience = patience

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Raises ConfigError if another process holds the lock for too long."""
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._patience, _FIRST_PAUSE
        while (descriptor := self._try_lock()) < 0:
            if loop.time() >= until:
                raise ConfigError(
                    f"Another process has locked {self.path} for more than "
                    f"{self._patience:.0f} s; stop it and try again."
                )
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        try:
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def try_hold(self) -> Iterator[bool]:
        """Yields whether the lock was free."""
        descriptor = self._try_lock()
        try:
            yield descriptor >= 0
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _try_lock(self) -> int:
        """The descriptor that holds the lock; -1 if it is taken."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # If the file was removed meanwhile, nobody else sees this lock.
            if os.fstat(descriptor).st_ino == self.path.stat().st_ino:
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return -1

    def _open(self) -> int:
        self._home.ensure_folder(self.path.parent)
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unwritable_error(self.path, error) from error
