"""Observes with fanotify which files other processes write and rename while a command runs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import posixpath
import select
import struct
import threading
from collections.abc import Collection, Iterator

from hermes.undo.entry import WrittenFile

FAN_CLOEXEC, FAN_NONBLOCK, FAN_UNLIMITED_QUEUE = 0x1, 0x2, 0x10
FAN_REPORT_DFID_NAME = 0xC00
FAN_MARK_ADD = 0x1
FAN_MODIFY, FAN_CLOSE_WRITE, FAN_MOVED_TO, FAN_EVENT_ON_CHILD = 0x2, 0x8, 0x80, 0x08000000
AT_FDCWD = -100
READ_BYTES = 64 * 1024
MOST_FOLDERS = 3_000
MOST_EVENTS = 50_000

# length, version, reserved, length of this header, mask, descriptor, pid
EVENT = struct.Struct("=IBBHQii")
# kind, padding, length, file system: then come a file handle and a name
INFO = struct.Struct("=BBHQ")
HANDLE = struct.Struct("=Ii")
HANDLE_BYTES = 128


class FanotifyGroup:
    """One event queue of the kernel. `descriptor` is negative where fanotify is missing or not
    permitted."""

    def __init__(self, flags: int, mask: int) -> None:
        self._mask = ctypes.c_uint64(mask | FAN_EVENT_ON_CHILD)
        self.descriptor = -1
        with contextlib.suppress(AttributeError, OSError):
            flags |= FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE
            opened = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_LARGEFILE", 0)
            self.descriptor = int(ctypes.CDLL(None).fanotify_init(flags, opened))

    def watch(self, folder: str) -> bool:
        mark = ctypes.CDLL(None).fanotify_mark
        name = os.fsencode(folder)
        return int(mark(self.descriptor, FAN_MARK_ADD, self._mask, AT_FDCWD, name)) == 0

    def read(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield descriptor, pid and further information of every waiting event."""
        with contextlib.suppress(OSError):
            while raw := os.read(self.descriptor, READ_BYTES):
                at = 0
                while at + EVENT.size <= len(raw):
                    length, _, _, header, _, descriptor, pid = EVENT.unpack_from(raw, at)
                    yield descriptor, pid, raw[at + header : at + length]
                    at += length


class WriteObserver:
    """Observes, between `start` and `stop`, which files other processes write. `others` are the
    processes that do not belong to the command."""

    def __init__(self, others: Collection[int]) -> None:
        self._others = others
        self._theirs: set[WrittenFile] = set()
        self._watched: set[str] = set()
        # Writes come with an open descriptor on every file system, renames only by name, and
        # only where folders have handles.
        self._writes: FanotifyGroup | None = None
        self._renames: FanotifyGroup | None = None
        self._folders: dict[bytes, str] = {}
        self._wake = (-1, -1)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to observe; do nothing where fanotify is missing or not permitted."""
        writes = FanotifyGroup(0, FAN_MODIFY | FAN_CLOSE_WRITE)
        if writes.descriptor < 0:
            return
        self._writes = writes
        renames = FanotifyGroup(FAN_REPORT_DFID_NAME, FAN_MOVED_TO)
        self._renames = renames if renames.descriptor >= 0 else None
        self._wake = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._follow, name="undo observer", daemon=True)
        self._thread.start()

    def watch(self, folder: str) -> None:
        """Watch this folder too; folders in `.git` and those above a limit are not watched."""
        if self._writes is None or folder in self._watched or "/.git/" in folder:
            return
        if len(self._watched) < MOST_FOLDERS:
            self._watched.add(folder)
            self._writes.watch(folder)
            if self._renames is not None and (handle := folder_handle(folder)):
                self._folders[handle] = folder
                self._renames.watch(folder)

    def stop(self) -> set[WrittenFile]:
        """Return the files that others wrote, with times: inode numbers are soon reused."""
        if self._thread is None or self._writes is None:
            return set()
        os.close(self._wake[1])
        self._thread.join()
        self._thread = None
        os.close(self._wake[0])
        os.close(self._writes.descriptor)
        if self._renames is not None:
            os.close(self._renames.descriptor)
        return self._theirs

    def _follow(self) -> None:
        assert self._writes is not None
        poll = select.poll()
        poll.register(self._writes.descriptor, select.POLLIN)
        if self._renames is not None:
            poll.register(self._renames.descriptor, select.POLLIN)
        poll.register(self._wake[0], select.POLLIN | select.POLLHUP)
        seen = 0
        while seen < MOST_EVENTS:
            ready = {descriptor for descriptor, _ in poll.poll()}
            # Events before the stop are in the queues, so read them first.
            for descriptor, pid, _ in self._writes.read():
                seen += 1
                self._take_write(descriptor, pid)
            for _, pid, info in self._renames.read() if self._renames is not None else ():
                seen += 1
                self._take_rename(pid, info)
            if self._wake[0] in ready:
                return

    def _take_write(self, descriptor: int, pid: int) -> None:
        if descriptor < 0:
            return
        try:
            if pid in self._others:
                self._add(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _take_rename(self, pid: int, info: bytes) -> None:
        if pid not in self._others or len(info) < INFO.size + HANDLE.size:
            return
        length = HANDLE.unpack_from(info, INFO.size)[0]
        end = INFO.size + HANDLE.size + length
        folder = self._folders.get(info[INFO.size : end])
        if folder is not None:
            name = os.fsdecode(info[end:].split(b"\0", 1)[0])
            with contextlib.suppress(OSError):
                self._add(os.lstat(posixpath.join(folder, name)))

    def _add(self, found: os.stat_result) -> None:
        self._theirs.add((found.st_dev, found.st_ino, found.st_mtime_ns))


def folder_handle(folder: str) -> bytes:
    """Return the handle by which the kernel names a folder in events, b"" where it has none."""
    buffer = ctypes.create_string_buffer(HANDLE.pack(HANDLE_BYTES, 0), HANDLE.size + HANDLE_BYTES)
    mount = ctypes.c_int()
    name = os.fsencode(folder)
    try:
        make = ctypes.CDLL(None).name_to_handle_at
    except AttributeError:
        return b""
    if make(AT_FDCWD, name, buffer, ctypes.byref(mount), 0) != 0:
        return b""
    length = HANDLE.unpack_from(buffer)[0]
    return buffer.raw[: HANDLE.size + length]
