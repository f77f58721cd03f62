"""Separates the changes of a command from those that other processes made meanwhile."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet

from hermes.undo.calls import FileChange
from hermes.undo.changes import FileId, WrittenFile, mark_certain, mode_only
from hermes.undo.intent import ScriptEffects
from hermes.undo.windows import OpenCall
from hermes.undo.writers import open_for_writing


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
