"""Compares two scans and attributes the changes to the command or to other processes."""

from __future__ import annotations

import ctypes
import os
import select
import stat
import struct
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from hermes.codec.values import Value
from hermes.undo.calls import CallBody, CallKind, FileChange
from hermes.undo.contents import present_token
from hermes.undo.entry import Manifest, PathEntry, differs, same_stamp
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


class ChangeReceipt(Value):
    """What a call did to files. `notes` is what undo will not be able to restore."""

    call_id: int = 0
    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()


class OpenCall:
    def __init__(
        self, call_id: int, body: CallBody, intent: ScriptEffects, *, kind: CallKind
    ) -> None:
        self.call_id = call_id
        self.body = body
        self.intent = intent
        self.kind: CallKind = kind
        self.before: Manifest = {}
        self.gaps: dict[str, str] = {}
        self.others: frozenset[int] = frozenset()
        self.process = ""
        self.observer: WriteObserver | None = None

    def is_folder(self, path: str) -> bool:
        """As far as known: an unscanned path may be a folder."""
        entry = self.before.get(path)
        return entry is None or entry.is_folder


def merge_changes(body: CallBody, fresh: tuple[FileChange, ...]) -> CallBody:
    changes = {each.name: each for each in body.changes}
    for each in fresh:
        old = changes.get(each.name)
        if old is not None:
            each = FileChange(
                *(each.name, old.before, each.after, old.sure and each.sure, each.source),
                *(0, old.lost),
            )
        changes[each.name] = each
    return CallBody(
        tuple(changes.values()), body.notes, body.taken, body.names, body.spots, body.guards
    )


# The content of a file that was just written is read again, to identify it later.
DOUBTFUL_BYTES = 1 << 20

Explains = Callable[[FileChange], bool]
FileId = tuple[int, int]
# A file and the time of its last write: inode numbers are soon reused.
WrittenFile = tuple[int, int, int]


def compare(before: Mapping[str, PathEntry], after: Manifest) -> list[FileChange]:
    """Return every path that changed, by name."""
    found: list[tuple[str, PathEntry | None, PathEntry | None]] = []
    for path, old in before.items():
        new = after.get(path)
        if new is old:
            continue
        if new is None or differs(old, new) or _changed_within_tick(path, old, new):
            found.append((path, old, new))
    found += [(path, None, new) for path, new in after.items() if path not in before]
    moved = {
        (old.device, old.inode): path
        for path, old, _ in found
        if old is not None and not old.is_folder
    }
    return [
        FileChange(
            os.fsencode(path), old, _add_token(path, new), source=_source(path, old, new, moved)
        )
        for path, old, new in sorted(found, key=lambda each: each[0])
    ]


def _changed_within_tick(path: str, old: PathEntry, new: PathEntry) -> bool:
    """Within one clock tick, a file can change without a new time stamp."""
    if not (old.fresh and old.token and old.is_file and same_stamp(old, new)):
        return False
    return present_token(path) not in (b"", old.token)


def _add_token(path: str, entry: PathEntry | None) -> PathEntry | None:
    if entry is None or not (entry.fresh and entry.is_file and not entry.token):
        return entry
    if entry.size > DOUBTFUL_BYTES:
        return entry
    return with_token(entry, present_token(path))


def _source(
    path: str, old: PathEntry | None, new: PathEntry | None, moved: dict[FileId, str]
) -> bytes:
    if old is not None or new is None or new.is_folder:
        return b""
    source = moved.get((new.device, new.inode), "")
    return os.fsencode(source) if source != path else b""


def with_token(entry: PathEntry, token: bytes) -> PathEntry:
    return PathEntry(
        *(entry.mode, entry.size, entry.modified, entry.changed, entry.inode, entry.device),
        *(entry.links, entry.owner, entry.group, entry.blocks, entry.target, token),
        *(entry.attributes, entry.fresh),
    )


def mark_certain(
    changes: Iterable[FileChange], explains: Explains, foreign: set[WrittenFile]
) -> list[FileChange]:
    """Mark each change by whether the command certainly made it: its text explains the change, and
    no earlier process has the file open for writing."""
    listed = list(changes)
    explained = [explains(each) for each in listed]
    # All hard links of a file change together.
    places = {_file_id(each) for each, yes in zip(listed, explained, strict=True) if yes}
    return [
        each
        if (yes or _shares(each, places)) and not _is_foreign(each, foreign)
        else _mark_uncertain(each)
        for each, yes in zip(listed, explained, strict=True)
    ]


def mode_only(change: FileChange) -> bool:
    old, new = change.before, change.after
    if old is None or new is None or old.kind != new.kind:
        return False
    return old.is_folder or (old.size, old.modified) == (new.size, new.modified)


def _mark_uncertain(change: FileChange) -> FileChange:
    return FileChange(change.name, change.before, change.after, False, change.source)


def _file_id(change: FileChange) -> FileId:
    entry = change.after or change.before
    return (entry.device, entry.inode) if entry else (0, 0)


def _is_foreign(change: FileChange, foreign: set[WrittenFile]) -> bool:
    """Another process wrote the present file; or it renamed the previous file to one that it
    wrote."""
    if change.after is not None and mode_only(change):
        return False
    entry = change.after or change.before
    return entry is not None and (entry.device, entry.inode, entry.modified) in foreign


def _shares(change: FileChange, places: set[FileId]) -> bool:
    entry = change.before or change.after
    return bool(entry and entry.is_file and entry.links > 1 and _file_id(change) in places)


def with_losses(
    changes: Iterable[FileChange], gaps: Mapping[str, str], large: Collection[str] = ()
) -> tuple[FileChange, ...]:
    """Add the reason where the state before cannot be restored from the store."""
    return tuple(_with_loss(each, gaps, large) for each in changes)


def _with_loss(change: FileChange, gaps: Mapping[str, str], large: Collection[str]) -> FileChange:
    lost = _loss(change, gaps)
    unseen = bool(large) and change.before is None and change.path in large
    if lost == change.lost and unseen == change.unseen:
        return change
    kept = (change.name, change.before, change.after, change.sure, change.source, change.back)
    return FileChange(*kept, lost, unseen)


def _loss(change: FileChange, gaps: Mapping[str, str]) -> str:
    old = change.before
    if old is None or old.is_folder or old.is_link or old.token or stat.S_ISFIFO(old.mode):
        return ""
    return gaps.get(change.path) or f"{change.path} changed before a copy of it was made."


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
        for name in _descriptors(pid):
            looked += 1
            place = _descriptor_file(pid, name)
            if place in wanted and place not in found and _is_writable(pid, name):
                found.add(place)
        if looked > MOST_DESCRIPTORS:
            break
    return found


def _descriptors(pid: int) -> Iterator[str]:
    try:
        yield from os.listdir(PROC / str(pid) / "fd")  # noqa: PTH208
    except OSError:
        return


def _descriptor_file(pid: int, name: str) -> FileId:
    try:
        found = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _is_writable(pid: int, name: str) -> bool:
    try:
        text = Path(f"/proc/{pid}/fdinfo/{name}").read_text()
    except OSError:
        return False
    flags = next((line.split()[1] for line in text.splitlines() if line.startswith("flags")), "0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def is_broad(intent: ScriptEffects) -> bool:
    """Return whether the text of the script does not name every path that it changes."""
    named = set(intent.names)
    return not intent.complete or any(touch.path not in named for touch in intent.touches)


def attribute_changes(
    window: OpenCall, changes: list[FileChange], theirs: AbstractSet[WrittenFile] = frozenset()
) -> list[FileChange]:
    """Mark each change by whether the command certainly made it. It made what its text names; it
    did not make what other processes wrote or have open for writing."""
    intent = window.intent
    named = {os.fsencode(name) for name in intent.names}
    written = {
        (each.after.device, each.after.inode, each.after.modified)
        for each in changes
        if each.after is not None and each.after.is_file and each.name not in named
    }
    # A process that wrote again before its event was read is seen with the later time only.
    newest: dict[FileId, int] = {}
    for device, inode, modified in theirs:
        newest[device, inode] = max(modified, newest.get((device, inode), 0))
    foreign = {each for each in written if newest.get(each[:2], 0) >= each[2]}
    # Files that others keep open existed before: logs, databases.
    old = {(each.before.device, each.before.inode) for each in changes if each.before is not None}
    rest = {each[:2]: each for each in written - foreign if each[:2] in old}
    foreign |= {rest[each] for each in open_for_writing(window.others, rest)}
    return mark_certain(changes, lambda each: _explains(intent, each), foreign)


def _explains(intent: ScriptEffects, change: FileChange) -> bool:
    if not intent.complete:
        return True
    return intent.can_explain(change.path, change.kind, mode_only=mode_only(change))
