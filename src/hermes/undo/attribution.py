"""Compares two scans and attributes the changes to the command or to other processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import stat
import struct
import threading
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hermes.undo.calls import CallBody, CallKind, FileChange
from hermes.undo.contents import present_token
from hermes.undo.entry import FileId, Manifest, PathEntry, WrittenFile, differs
from hermes.undo.script_effects import ScriptEffects

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

    def start(self) -> None:
        """Without fanotify, or where it is not permitted, nothing is observed."""
        try:
            make = ctypes.CDLL(None).fanotify_init
        except (AttributeError, OSError):
            return
        flags = FAN_CLOEXEC | FAN_NONBLOCK | FAN_UNLIMITED_QUEUE
        opened = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_LARGEFILE", 0)
        self._queue = int(make(flags, opened))
        if self._queue >= 0:
            self._wake = os.pipe2(os.O_CLOEXEC)
            self._thread = threading.Thread(target=self._follow, name="undo observer", daemon=True)
            self._thread.start()

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
            with contextlib.suppress(OSError):
                while raw := os.read(self._queue, READ_BYTES):
                    at = 0
                    while at + EVENT.size <= len(raw):
                        length, _, _, _, _, descriptor, pid = EVENT.unpack_from(raw, at)
                        at += length
                        seen += 1
                        if descriptor >= 0:
                            self._take(descriptor, pid)
            if self._wake[0] in ready:
                return

    def _take(self, descriptor: int, pid: int) -> None:
        try:
            if pid in self._others:
                found = os.fstat(descriptor)
                self._theirs.add((found.st_dev, found.st_ino, found.st_mtime_ns))
        finally:
            os.close(descriptor)


class OpenCall(msgspec.Struct):
    """A call that has begun. `before` is the scan at its start and `gaps` what that misses;
    `others` are the processes that ran already; `process` is the background process that it
    started."""

    call_id: int
    kind: CallKind
    body: CallBody
    intent: ScriptEffects
    before: Manifest = {}
    gaps: dict[str, str] = {}
    others: frozenset[int] = frozenset()
    process: str = ""
    observer: WriteObserver | None = None


def merge_changes(body: CallBody, fresh: tuple[FileChange, ...]) -> CallBody:
    changes = {each.name: each for each in body.changes}
    for each in fresh:
        old = changes.get(each.name)
        if old is not None:
            sure = old.sure and each.sure
            each = replace(each, before=old.before, sure=sure, back=0, lost=old.lost, unseen=False)
        changes[each.name] = each
    return replace(body, changes=tuple(changes.values()), ended=0)


# The content of a file that was just written is read again, to identify it later.
DOUBTFUL_BYTES = 1 << 20


def compare(before: Mapping[str, PathEntry], after: Manifest) -> list[FileChange]:
    """Return every path that changed, by name."""
    found: list[tuple[str, PathEntry | None, PathEntry | None]] = []
    moved: dict[FileId, str] = {}
    for path, old in before.items():
        new = after.get(path)
        if new is old:
            continue
        changed = new is None or differs(old, new)
        if not changed and old.fresh and old.token and old.is_file:
            # Within one clock tick, a file can change without a new time stamp.
            changed = present_token(path) not in (b"", old.token)
        if changed:
            found.append((path, old, new))
            if not old.is_folder:
                moved[old.file_id] = path
    found += [(path, None, new) for path, new in after.items() if path not in before]
    changes = []
    for path, was, now in sorted(found, key=lambda each: each[0]):
        source = ""
        if was is None and now is not None and not now.is_folder:
            source = moved.get(now.file_id, "")
        doubtful = now is not None and now.fresh and now.is_file and not now.token
        if now is not None and doubtful and now.size <= DOUBTFUL_BYTES:
            now = replace(now, token=present_token(path))
        changes.append(FileChange(os.fsencode(path), was, now, source=os.fsencode(source)))
    return changes


def with_losses(
    changes: Iterable[FileChange], gaps: Mapping[str, str], large: Collection[str] = ()
) -> tuple[FileChange, ...]:
    """Add the reason where the state before cannot be restored from the store."""
    done = []
    for change in changes:
        old, lost = change.before, ""
        if old and not (old.is_folder or old.is_link or old.token or stat.S_ISFIFO(old.mode)):
            lost = gaps.get(change.path) or f"{change.path} changed before a copy of it was made."
        unseen = old is None and change.path in large
        done.append(replace(change, lost=lost, unseen=unseen))
    return tuple(done)


PROC = Path("/proc")
MOST_DESCRIPTORS = 20_000


def list_pids() -> frozenset[int]:
    """Return all pids; empty without /proc."""
    try:
        return frozenset(int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208
    except OSError:
        return frozenset()


def open_for_writing(pids: Collection[int], wanted: Collection[FileId]) -> set[FileId]:
    """Return those of the wanted files that one of the processes has open for writing."""
    found: set[FileId] = set()
    if not wanted:
        return found
    looked = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(PROC / str(pid) / "fd"):  # noqa: PTH208
                looked += 1
                with contextlib.suppress(OSError):
                    opened = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                    place = opened.st_dev, opened.st_ino
                    if place in wanted and place not in found and _is_writable(pid, name):
                        found.add(place)
        if looked > MOST_DESCRIPTORS:
            break
    return found


def _is_writable(pid: int, name: str) -> bool:
    text = Path(f"/proc/{pid}/fdinfo/{name}").read_text()
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def attribute_changes(
    call: OpenCall, changes: list[FileChange], theirs: AbstractSet[WrittenFile] = frozenset()
) -> list[FileChange]:
    """Mark each change by whether the command certainly made it. It made what its text names; it
    did not make what other processes wrote or have open for writing."""
    named = {os.fsencode(name) for name in call.intent.names}
    written = {
        each.after.written
        for each in changes
        if each.after is not None and each.after.is_file and each.name not in named
    }
    # A process that wrote again before its event was read is seen with the later time only.
    newest: dict[FileId, int] = {}
    for device, inode, modified in theirs:
        newest[device, inode] = max(modified, newest.get((device, inode), 0))
    foreign = {each for each in written if newest.get(each[:2], 0) >= each[2]}
    # Files that others keep open existed before: logs, databases.
    old = {each.before.file_id for each in changes if each.before is not None}
    rest = {each[:2]: each for each in written - foreign if each[:2] in old}
    foreign |= {rest[each] for each in open_for_writing(call.others, rest)}
    explained = [
        call.intent.can_explain(each.path, each.kind, mode_only=each.mode_only) for each in changes
    ]
    # All hard links of a file change together.
    linked = {
        entry.file_id
        for each, yes in zip(changes, explained, strict=True)
        if yes and (entry := each.after or each.before)
    }
    done = []
    for each, yes in zip(changes, explained, strict=True):
        entry, first = each.after or each.before, each.before or each.after
        if entry and first and first.is_file and first.links > 1:
            yes = yes or entry.file_id in linked
        # Another process wrote the present file, or replaced the previous one by it.
        if entry and entry.written in foreign and not (each.after and each.mode_only):
            yes = False
        done.append(each if yes else replace(each, sure=False))
    return done
