"""Separates the changes of a command from those that other processes made meanwhile."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet

from hermes.undo.calls import Change
from hermes.undo.changes import Place, Written, judged, mode_only
from hermes.undo.intent import Intent
from hermes.undo.windows import Window
from hermes.undo.writers import open_for_writing


def is_broad(intent: Intent) -> bool:
    """Return whether the text of the script does not name every path that it changes."""
    named = set(intent.names)
    return not intent.complete or any(touch.path not in named for touch in intent.touches)


def judge(
    window: Window, changes: list[Change], theirs: AbstractSet[Written] = frozenset()
) -> list[Change]:
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
    newest: dict[Place, int] = {}
    for device, inode, modified in theirs:
        newest[device, inode] = max(modified, newest.get((device, inode), 0))
    foreign = {each for each in written if newest.get(each[:2], 0) >= each[2]}
    # Files that others keep open existed before: logs, databases.
    old = {(each.before.device, each.before.inode) for each in changes if each.before is not None}
    rest = {each[:2]: each for each in written - foreign if each[:2] in old}
    foreign |= {rest[each] for each in open_for_writing(window.others, rest)}
    return judged(changes, lambda each: _explains(intent, each), foreign)


def _explains(intent: Intent, change: Change) -> bool:
    if not intent.complete:
        return True
    return intent.explains(change.path, change.kind, mode_only=mode_only(change))
