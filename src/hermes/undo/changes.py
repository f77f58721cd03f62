"""Compares two scans of the same trees: what was created, changed, deleted and renamed, and whether
the command did it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping

from hermes.undo.calls import FileChange
from hermes.undo.contents import present_token
from hermes.undo.entry import Manifest, PathEntry, differs, same_stamp

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
