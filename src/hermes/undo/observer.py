"""Watches with fanotify, while a command runs, which files were written by earlier processes.

The kernel reports the writer of a file only to root. For other users, edits by other processes
during a command count as changes of the command unless its text explains otherwise."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Collection

from hermes.undo.changes import WrittenFile

FAN_CLOEXEC, FAN_NONBLOCK, FAN_UNLIMITED_QUEUE = 0x1, 0x2, 0x10
FAN_MARK_ADD = 0x1
FAN_MODIFY, FAN_CLOSE_WRITE, FAN_EVENT_ON_CHILD = 0x2, 0x8, 0x08000000
MASK = ctypes.c_uint64(FAN_MODIFY | FAN_CLOSE_WRITE | FAN_EVENT_ON_CHILD)
AT_FDCWD = -100
EVENT = struct.Struct("=IBBHQii")
READ_BYTES = 64 * 1024
MOST_FOLDERS = 3_000
MOST_EVENTS = 50_000


class WriteObserver:
    """Active between `start` and `stop`. `others` are the processes that do not belong to the
    command."""

    def __init__(self, others: Collection[int]) -> None:
        self._others = others
        self._theirs: set[WrittenFile] = set()
        self._watched: set[str] = set()
        self._queue = -1
        self._wake = (-1, -1)
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Return False where fanotify is not permitted."""
        self._queue = _open()
        if self._queue < 0:
            return False
        self._wake = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._follow, name="undo observer", daemon=True)
        self._thread.start()
        return True

    def watch(self, folder: str) -> None:
        """Watch this folder too; folders in `.git` and those above a limit are not watched."""
        if self._thread is None or folder in self._watched or "/.git/" in folder:
            return
        if len(self._watched) < MOST_FOLDERS:
            self._watched.add(folder)
            name = os.fsencode(folder)
            ctypes.CDLL(None).fanotify_mark(self._queue, FAN_MARK_ADD, MASK, AT_FDCWD, name)

    def stop(self) -> set[WrittenFile]:
        """Return the files that others wrote, with times: inode numbers are soon reused."""
        if self._thread is None:
            return set()
        os.close(self._wake[1])
        self._thread.join()
        self._thread = None
        for descriptor in (self._queue, self._wake[0]):
            os.close(descriptor)
        return self._theirs

    def _follow(self) -> None:
        poll = select.poll()
        poll.register(self._queue, select.POLLIN)
        poll.register(self._wake[0], select.POLLIN | select.POLLHUP)
        seen = 0
        while seen < MOST_EVENTS:
            ready = {descriptor for descriptor, _ in poll.poll()}
            # Events before the stop are in the queue, so read them first.
            while raw := _read(self._queue):
                seen += self._take(raw)
            if self._wake[0] in ready:
                return

    def _take(self, raw: bytes) -> int:
        at = count = 0
        while at + EVENT.size <= len(raw):
            length, _, _, _, _, descriptor, pid = EVENT.unpack_from(raw, at)
            at += length
            count += 1
            if descriptor < 0:
                continue
            try:
                if pid in self._others:
                    found = os.fstat(descriptor)
                    self._theirs.add((found.st_dev, found.st_ino, found.st_mtime_ns))
            finally:
                os.close(descriptor)
        return count


def _open() -> int:
    try:
        make = ctypes.CDLL(None).fanotify_init
    except (AttributeError, OSError):
        return -1
    flags = FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE
    return int(make(flags, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_LARGEFILE", 0)))


def _read(queue: int) -> bytes:
    try:
        return os.read(queue, READ_BYTES)
    except OSError:
        return b""
