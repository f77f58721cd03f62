"""Ends an undo whose process died in the middle, so that it can be asked for again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes.undo.calls import Body, Call, Calls, Change
from hermes.undo.contents import present_token
from hermes.undo.entry import Entry, look
from hermes.undo.store import Store


def end_undo(store: Store, call: Call) -> None:
    """What it has restored counts as restored, the rest as never begun; files that it had put
    aside go back to where they were."""
    for name, aside in call.body.guards:
        with contextlib.suppress(OSError):
            _take_in(call, os.fsdecode(name), os.fsdecode(aside))
    done = [each for change in call.changes if (each := _done(change)) is not None]
    Calls(store).end(call.id, Body(changes=tuple(done)))


def _take_in(call: Call, path: str, aside: str) -> None:
    """To its present name, or to the one that it was on the way to."""
    found = look(aside)
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


def _done(change: Change) -> Change | None:
    """The intended change as it stands now. A file that is neither what it was nor what it should
    be counts as changed, so that it is brought back the next time."""
    wanted, now = change.after, look(change.path)
    if _alike(change.path, change.before, now):
        return None
    back = change.back if _alike(change.path, wanted, now) else 0
    return Change(change.name, change.before, now, back=back)


def _alike(path: str, one: Entry | None, now: Entry | None) -> bool:
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
