"""Compares two scans and attributes the changes to the command or to other processes."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hermes.undo.calls import CallBody, CallKind, FileChange
from hermes.undo.entry import (
    FileId,
    Manifest,
    PathEntry,
    WrittenFile,
    differs,
    present_token,
    read_entry,
)
from hermes.undo.observer import WriteObserver
from hermes.undo.script_effects import ScriptEffects


class OpenCall(msgspec.Struct):
    """A call that has begun."""

    call_id: int
    kind: CallKind
    body: CallBody
    intent: ScriptEffects
    before: Manifest = {}  # the scan at its start
    gaps: dict[str, str] = {}  # what that scan misses, by path, and why
    others: frozenset[int] = frozenset()  # the processes that ran already
    process: str = ""  # the background process that it started
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
        if new is not None and not changed and old.fresh and old.token and old.is_file:
            # Within one clock tick, a file can change without a new time stamp.
            changed = token_of(path, new) not in (b"", old.token)
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
            now = replace(now, token=token_of(path, now))
        changes.append(FileChange(os.fsencode(path), was, now, source=os.fsencode(source)))
    return changes


def token_of(path: str, scanned: PathEntry) -> bytes:
    """Return the token of a file's content, or b"" if the file has changed since the scan: that
    change came after the call, and its content must not be taken for that of the scan."""
    token = present_token(path)
    now = read_entry(path)
    return token if now is not None and not differs(scanned, now) else b""


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
                    inode = opened.st_dev, opened.st_ino
                    if inode in wanted and inode not in found and _is_writable(pid, name):
                        found.add(inode)
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
    """Mark whether the command certainly made each change. It made the changes that its text names.
    It did not make changes to files that other processes wrote or have open for writing."""
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
