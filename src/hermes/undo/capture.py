"""Stores contents before a call can change them; large files get a second hard link."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from hermes.codec.values import Value
from hermes.undo.entry import (
    BY_STAMP,
    LARGE,
    Manifest,
    PathEntry,
    attributes_of,
    copy_content,
    differs,
    entry_of,
    hash_content,
    open_file,
    read_entry,
    read_whole,
    stamp_token,
    text_token,
    try_reflink,
)
from hermes.undo.scanner import UndoLimits, reason_not_stored, size_words
from hermes.undo.store import CheckpointStore

BATCH_BYTES = 32 * 1024 * 1024
UNHASHED = 64 * 1024 * 1024
TRIES = 4
# A database and its log are only consistent together.
PARTNERS = ("-wal", "-journal")


class CaptureResult(Value):
    """The stored contents of some files."""

    entries: Manifest  # with their tokens
    gaps: dict[str, str]  # what could not be stored, by path, and why
    gone: tuple[str, ...] = ()  # what had disappeared


class ContentCapture:
    """Stores the contents of files before they change. `room` returns how many bytes the store may
    still take; `now_ns` is the clock of the file systems."""

    def __init__(
        self,
        store: CheckpointStore,
        limits: UndoLimits,
        room: Callable[[int], int],
        now_ns: Callable[[], int],
    ) -> None:
        self._store = store
        self._limits = limits
        self._room = room
        self._now_ns = now_ns
        self._blobs: list[tuple[bytes, bytes]] = []
        self._pending = 0

    def capture_all(
        self, wanted: Mapping[str, PathEntry], *, is_named: Callable[[str], bool] = bool
    ) -> CaptureResult:
        """Store these entries, the smallest first."""
        entries: Manifest = {}
        gaps: dict[str, str] = {}
        gone: list[str] = []
        left = self._room(sum(entry.weight for entry in wanted.values() if entry.is_file))
        for path, entry in sorted(wanted.items(), key=lambda pair: pair[1].size):
            weight, why = (entry.weight, "") if entry.is_file else (0, "")
            if not entry.is_file or entry.size > self._limits.least_limit:
                named = entry.is_file and is_named(path)
                why = reason_not_stored(path, entry, self._limits, named=named)
            if not why and weight > left:
                why = f"{path} ({size_words(weight)}): the checkpoint store is full."
            if why:
                gaps[path] = why
                continue
            left -= weight
            kept = self._capture_one(path, entry)
            if kept is not None:
                entries[path] = kept
            elif os.path.lexists(path):
                gaps[path] = f"{path} cannot be read."
            else:
                gone.append(path)
        self._capture_databases(entries)
        self._flush()
        return CaptureResult(entries=entries, gaps=gaps, gone=tuple(gone))

    def _capture_one(self, path: str, entry: PathEntry) -> PathEntry | None:
        """Return the entry with its content stored, or None."""
        if not entry.is_file:
            with contextlib.suppress(OSError):
                if not entry.is_link:
                    with open_file(path) as descriptor:
                        found = attributes_of(descriptor)
                    return replace(entry, attributes=found or entry.attributes)
            return entry
        try:
            if (kept := self._capture_unchanged(path, entry)) is not None:
                return kept
            for _ in range(TRIES):
                kept, stable = self._file(path)
                if stable:
                    break
        except OSError:
            return None
        return kept

    def _flush(self) -> None:
        if self._blobs:
            self._store.put(self._blobs)
        self._blobs, self._pending = [], 0

    def _capture_unchanged(self, path: str, entry: PathEntry) -> PathEntry | None:
        """Store a small file that is unchanged since the scan in one step: the common case."""
        if entry.size > LARGE or entry.fresh:
            return None
        with open_file(path) as descriptor:
            data = os.read(descriptor, entry.size + 1)
            attributes = attributes_of(descriptor)
            found = os.fstat(descriptor)
        if len(data) != entry.size or differs(entry, entry_of(path, found)):
            return None
        token = text_token(data)
        self._hold(token, data)
        return replace(entry, token=token, attributes=attributes or entry.attributes)

    def _hold(self, token: bytes, data: bytes) -> None:
        self._blobs.append((token, data))
        self._pending += len(data)
        if self._pending > BATCH_BYTES:
            self._flush()

    def _file(self, path: str) -> tuple[PathEntry, bool]:
        """Store a file; return its entry, and whether it stayed the same while it was read."""
        with open_file(path) as descriptor:
            before = os.fstat(descriptor)
            if before.st_size <= LARGE:
                data = read_whole(descriptor, before.st_size)
                token = text_token(data)
                self._hold(token, data)
            else:
                token = self._large(path, descriptor, before)
            found = attributes_of(descriptor)
            after = os.fstat(descriptor)
        entry = replace(entry_of(path, after, self._now_ns()), token=token, attributes=found)
        same = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
        return entry, same

    def _large(self, path: str, source: int, found: os.stat_result) -> bytes:
        temporary = self._store.temporary()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._store.prepare()
        try:
            with open_file(temporary, flags) as target:
                entry = entry_of(path, found)
                token = stamp_token(BY_STAMP, entry)
                if entry.weight > UNHASHED:
                    copy_content(source, target, found.st_size)
                elif not try_reflink(source, target):
                    token = hash_content(source, found.st_size, target)
                weight = min(found.st_size, os.fstat(target).st_blocks * 512)
            temporary.replace(self._store.object_path(token))
        finally:
            temporary.unlink(missing_ok=True)
        self._store.put_object(token, weight)
        return token

    def _capture_databases(self, entries: Manifest) -> None:
        """Read databases again, log first, whose log changed between the two reads."""
        for path in [p for p in entries if p.endswith(PARTNERS)]:
            owner = path.rpartition("-")[0]
            for _ in range(TRIES):
                pair = [each for each in (path, owner) if each in entries]
                now = [(read_entry(each), entries[each]) for each in pair]
                if len(pair) < 2 or all(
                    found is None or (found.modified, found.size) == (old.modified, old.size)
                    for found, old in now
                ):
                    break
                for each in pair:
                    if kept := self._capture_one(each, entries[each]):
                        entries[each] = kept


MOST = 200


def link_large_files(
    store: CheckpointStore, entries: Mapping[str, PathEntry], gaps: Mapping[str, str]
) -> list[tuple[str, PathEntry, bytes]]:
    """Return path, present entry and token of every file that got a second link."""
    found = []
    for path in list(gaps)[:MOST]:
        entry = entries.get(path)
        if entry is None or not entry.is_file or entry.token:
            continue
        token = stamp_token(BY_STAMP, entry)
        if link(store, path, token) and (now := read_entry(path)):
            found.append((path, now, token))
    return found


def link_before_removal(store: CheckpointStore, path: str, entry: PathEntry) -> bytes:
    """Link a large file that is about to be deleted or replaced. Return its token, or b"" when a
    copy is needed."""
    if not entry.is_file or entry.size <= LARGE or entry.links != 1:
        return b""
    token = stamp_token(BY_STAMP, entry)
    return token if link(store, path, token) else b""


def link(store: CheckpointStore, path: str, token: bytes) -> bool:
    """Give a file its second link in the store; impossible across file systems."""
    store.prepare()
    target = store.object_path(token)
    try:
        target.unlink(missing_ok=True)
        os.link(path, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def release_links(
    store: CheckpointStore, guards: Sequence[tuple[bytes, bytes]], before: Mapping[str, PathEntry]
) -> Manifest:
    """Remove, after the command, the second links of files that still exist unchanged. Return the
    entries before, with their tokens."""
    found: Manifest = {}
    for name, token in guards:
        path, second = os.fsdecode(name), store.object_path(token)
        old, now = before.get(path), read_entry(path)
        held = read_entry(str(second))
        if old is None or held is None:
            continue
        if now is not None and now.file_id == held.file_id:
            second.unlink()
            after = read_entry(path)
            if after is not None and (old.size, old.modified) == (after.size, after.modified):
                found[path] = after
        elif (held.size, held.modified) == (old.size, old.modified):
            store.put_object(token, held.weight)
            found[path] = replace(old, token=token)
        else:
            second.unlink()
    return found
