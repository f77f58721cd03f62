"""Wakes schedulers in other processes when the jobs change, so that they need not poll."""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import suppress
from pathlib import Path


class SchedulerSignal:
    """The pipe of one scheduler. `event` is set when a process has changed the jobs."""

    def __init__(self, folder: Path) -> None:
        self.event = asyncio.Event()
        self._path = folder / f"{os.getpid()}-{os.urandom(4).hex()}"
        self._descriptor = -1

    def open(self) -> None:
        """Listen. Where there are no pipes, the scheduler finds changes at its next pause."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.mkfifo(self._path, 0o600)
            # Open for both, or the pipe would report an end after each writer.
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def close(self) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
        self._path.unlink(missing_ok=True)

    def _read(self) -> None:
        with suppress(OSError):
            os.read(self._descriptor, 65_536)
        self.event.set()


def wake_schedulers(folder: Path) -> None:
    """Wake all schedulers of the home. Pipes of dead processes are removed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ENXIO:
                path.unlink(missing_ok=True)
            continue
        try:
            # A full pipe wakes its reader anyway.
            with suppress(OSError):
                os.write(descriptor, b"!")
        finally:
            os.close(descriptor)
