"""Tells what a command changed from what others changed while it ran."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from hermes.undo import writers
from hermes.undo.calls import Change
from hermes.undo.changes import Written, judged
from hermes.undo.intent import Intent
from hermes.undo.tree import Look
from hermes.undo.windows import Window


def is_broad(intent: Intent) -> bool:
    """The text does not tell path by path what will change."""
    named = set(intent.names)
    return not intent.complete or any(touch.path not in named for touch in intent.touches)


def judge(
    window: Window, changes: list[Change], theirs: AbstractSet[Written] = frozenset()
) -> list[Change]:
    """Each change with whether it is surely the command's. What its text names is; what others
    were seen to write, or have open for writing, is not."""
    intent = window.intent
    named = set(intent.names)
    written = {
        (each.after.device, each.after.inode, each.after.modified)
        for each in changes
        if each.after is not None and each.after.is_file and each.path not in named
    }
    foreign = written & theirs
    # What others keep open was there before: logs, databases.
    old = {(each.before.device, each.before.inode) for each in changes if each.before is not None}
    rest = {each[:2]: each for each in written - theirs if each[:2] in old}
    foreign |= {rest[each] for each in writers.open_for_writing(window.others, rest)}
    return judged(
        changes, lambda path, kind, mode: intent.explains(path, kind, mode_only=mode), foreign
    )


def watched(found: Look) -> list[str]:
    """The folders in which it matters who writes."""
    return [folder for folder in found.folders if "/.git/" not in folder]
