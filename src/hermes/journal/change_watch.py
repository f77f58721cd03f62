"""Wakes a task when any process commits to the journal, without polling where inotify exists."""

from __future__ import annotations

import asyncio
import os
import struct
from contextlib import suppress
from pathlib import Path

from hermes.core.concurrency import Wakeup
from hermes.core.world import Clock

# A change of the log is seen before its commit: SQLite still has to sync the file. A commit is
# usually done after the first time, so the task looks then, and again after each of the pauses.
# After the last pause it looks because some shared folders report no changes by other machines.
SYNC_SECONDS = 0.03
PAUSES_SECONDS = (0.25, 0.5, 1.0, 2.0, 30.0)
# Where the kernel reports nothing.
POLL_SECONDS = 0.5

_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_MODIFIED, _MOVED_TO, _CREATED = 0x2, 0x80, 0x100
# watch, mask, cookie, length of the name that follows
_EVENT = struct.Struct("iIII")
_READ_BYTES = 64 * 1024


class ChangeWatch:
    """Waits for commits of any process to one journal. The folder is watched and not the
    write-ahead log itself, because SQLite removes and creates that file."""

    def __init__(self, database: Path, clock: Clock) -> None:
        self._folder = database.parent
        self._log_name = os.fsencode(f"{database.name}-wal")
        self._clock = clock
        self._changed = Wakeup()
        # The number of looks since the last change.
        self._looks = 0
        self._descriptor = -1

    async def wait(self) -> None:
        """Return when the journal may have changed since this method returned before."""
        if self._descriptor < 0:
            await self._clock.sleep(POLL_SECONDS)
            self._descriptor = self._open()
            return
        is_active = self._looks < 2
        if await self._changes_within(PAUSES_SECONDS[self._looks]):
            # Commits of this process count too, and a turn makes many of them.
            await self._clock.sleep(PAUSES_SECONDS[0] if is_active else SYNC_SECONDS)
            self._looks = 0
        else:
            self._looks = min(self._looks + 1, len(PAUSES_SECONDS) - 1)

    async def _changes_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        """Return the descriptor of a watch, or a negative number where there is none."""
        descriptor = _open_inotify(self._folder)
        if descriptor >= 0:
            try:
                asyncio.get_running_loop().add_reader(descriptor, self._read, descriptor)
            except NotImplementedError:
                os.close(descriptor)
                return -1
        return descriptor

    def _read(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            raw, at = os.read(descriptor, _READ_BYTES), 0
            while at + _EVENT.size <= len(raw):
                *_, length = _EVENT.unpack_from(raw, at)
                at += _EVENT.size + length
                # A lost event has no name.
                name = raw[at - length : at].rstrip(b"\0")
                if name in (self._log_name, b""):
                    self._changed.set()


def _open_inotify(folder: Path) -> int:
    # Loading takes as long as many look-ups, and a session that ends soon never needs it.
    import ctypes

    try:
        library = ctypes.CDLL(None)
        descriptor = int(library.inotify_init1(_FLAGS))
    except (AttributeError, OSError):
        return -1
    mask = ctypes.c_uint32(_MODIFIED | _MOVED_TO | _CREATED)
    if descriptor >= 0 and library.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
        os.close(descriptor)
        return -1
    return descriptor
