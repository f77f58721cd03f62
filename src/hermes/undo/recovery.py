"""Ends an undo whose process died, so that it can be requested again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes.undo.calls import CallBody, CallLog, FileChange, RecordedCall
from hermes.undo.contents import present_token
from hermes.undo.entry import PathEntry, read_entry
from hermes.undo.store import CheckpointStore


def end_undo(store: CheckpointStore, call: RecordedCall) -> None:
    """What it has restored counts as restored, the rest as never begun; files that it had moved
    aside go back."""
    for name, aside in call.body.guards:
        with contextlib.suppress(OSError):
            _move_back(call, os.fsdecode(name), os.fsdecode(aside))
    done = [each for change in call.changes if (each := _current_change(change)) is not None]
    CallLog(store).end(call.id, CallBody(changes=tuple(done)))


def _move_back(call: RecordedCall, path: str, aside: str) -> None:
    """Move it to its present name, or to the intended one."""
    found = read_entry(aside)
    if found is None:
        return
    wanted = [
        change.path
        for change in call.changes
        if change.after is not None
        and (change.after.inode, change.after.size) == (found.inode, found.size)
    ]
    for name in (path, *wanted):
        if not os.path.lexists(name):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(aside).rename(name)
            return


def _current_change(change: FileChange) -> FileChange | None:
    """Return the intended change as it is now. A file in neither state counts as changed, so that
    the next undo restores it."""
    wanted, now = change.after, read_entry(change.path)
    if _matches(change.path, change.before, now):
        return None
    back = change.back if _matches(change.path, wanted, now) else 0
    return FileChange(change.name, change.before, now, back=back)


def _matches(path: str, one: PathEntry | None, now: PathEntry | None) -> bool:
    if one is None or now is None:
        return one is now
    if one.mode != now.mode:
        return False
    if not one.is_file:
        return one.target == now.target
    if (one.changed, one.size) == (now.changed, now.size):
        return True
    if (one.modified, one.size) != (now.modified, now.size):
        return False
    return bool(one.token) and present_token(path) == one.token
