"""Reconstructs past states of memory and computes how to undo a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.core.errors import UsageError
from hermes.memory.entries import Change, Entry
from hermes.memory.planning import Step


def as_of(changes: Iterable[Change], at: float) -> list[Entry]:
    """Returns the entries at that time, without entries forgotten since."""
    current: dict[int, Entry] = {}
    for change in changes:
        if change.at > at:
            break
        fold(current, change)
    return [current[key] for key in sorted(current)]


def fold(current: dict[int, Entry], change: Change) -> None:
    """Applies a change. Held and rejected changes have no effect; an accepted change is applied by
    a second change that settles it."""
    if change.held or change.action == "reject":
        return
    current.pop(change.entry, None)
    if change.action != "remove" and not change.forgotten:
        current[change.entry] = Entry(
            id=change.entry,
            target=change.target,
            text=change.text,
            change=change.id,
            since=change.at,
            finding=change.finding,
        )


def newest(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Returns the changes of the last call or command that are still in effect, newest first.
    UsageError when there are none."""
    undone = taken_back(changes)
    current = [
        each
        for each in reversed(changes)
        if takes_effect(each) and not each.reverts and each.id not in undone and not each.forgotten
    ]
    if not current:
        raise UsageError("There is nothing to undo.")
    last = current[0]
    return tuple(each for each in current if (each.at, each.source) == (last.at, last.source))


def inverse(change: Change, history: Sequence[Change]) -> Step:
    """Returns the step that undoes a change; `history` holds all changes of its entry. UsageError
    when a later change depends on it."""
    if not takes_effect(change):
        raise UsageError(f"c{change.id} had no effect that could be undone.")
    undone = taken_back(history)
    if change.id in undone:
        raise UsageError(f"c{change.id} is already undone.")
    later = [
        each
        for each in history
        if each.id > change.id and takes_effect(each) and not each.reverts and each.id not in undone
    ]
    if later:
        raise UsageError(f"c{later[-1].id} came after c{change.id}; undo that first.")
    before: dict[int, Entry] = {}
    for each in history:
        if each.id < change.id:
            fold(before, each)
    previous = before.get(change.entry)
    if previous is None:
        if change.action == "remove":
            raise UsageError(
                f"The text that c{change.id} removed was forgotten and cannot be restored."
            )
        return Step(action="remove", entry=change.entry)
    if change.action == "remove":
        return Step(action="add", entry=change.entry, text=previous.text)
    return Step(action="replace", entry=change.entry, text=previous.text)


def taken_back(changes: Sequence[Change]) -> set[int]:
    """Returns the changes that are undone by an undo that is itself in effect."""
    undone: set[int] = set()
    for change in reversed(changes):
        if change.reverts and change.id not in undone:
            undone.add(change.reverts)
    return undone


def takes_effect(change: Change) -> bool:
    return not change.held and change.action != "reject"
