"""Reconstructs past states of memory and computes how to undo a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.core.errors import UsageError
from hermes.memory.entries import MemoryChange, MemoryEntry
from hermes.memory.planning import MemoryStep


def entries_at(changes: Iterable[MemoryChange], at: float) -> list[MemoryEntry]:
    """Returns the entries at that time, without entries forgotten since."""
    current: dict[int, MemoryEntry] = {}
    for change in changes:
        if change.at > at:
            break
        apply_change(current, change)
    return [current[key] for key in sorted(current)]


def apply_change(current: dict[int, MemoryEntry], change: MemoryChange) -> None:
    """Applies a change. Held and rejected changes have no effect; an accepted change is applied by
    a second change that settles it."""
    if change.held or change.action == "reject":
        return
    current.pop(change.entry, None)
    if change.action != "remove" and not change.forgotten:
        current[change.entry] = MemoryEntry(
            id=change.entry,
            target=change.target,
            text=change.text,
            change=change.id,
            since=change.at,
            finding=change.finding,
        )


def last_changes(changes: Sequence[MemoryChange]) -> tuple[MemoryChange, ...]:
    """Returns the changes of the last call or command that are still in effect, newest first.
    UsageError when there are none."""
    undone = undone_changes(changes)
    current = [
        each
        for each in reversed(changes)
        if is_effective(each) and not each.reverts and each.id not in undone and not each.forgotten
    ]
    if not current:
        raise UsageError("There is nothing to undo.")
    last = current[0]
    return tuple(each for each in current if (each.at, each.source) == (last.at, last.source))


def undo_step(change: MemoryChange, history: Sequence[MemoryChange]) -> MemoryStep:
    """Returns the step that undoes a change; `history` holds all changes of its entry. UsageError
    when a later change depends on it."""
    if not is_effective(change):
        raise UsageError(f"c{change.id} had no effect that could be undone.")
    undone = undone_changes(history)
    if change.id in undone:
        raise UsageError(f"c{change.id} is already undone.")
    later = [
        each
        for each in history
        if each.id > change.id and is_effective(each) and not each.reverts and each.id not in undone
    ]
    if later:
        raise UsageError(f"c{later[-1].id} came after c{change.id}; undo that first.")
    before: dict[int, MemoryEntry] = {}
    for each in history:
        if each.id < change.id:
            apply_change(before, each)
    previous = before.get(change.entry)
    if previous is None:
        if change.action == "remove":
            raise UsageError(
                f"The text that c{change.id} removed was forgotten and cannot be restored."
            )
        return MemoryStep(action="remove", entry=change.entry)
    if change.action == "remove":
        return MemoryStep(action="add", entry=change.entry, text=previous.text)
    return MemoryStep(action="replace", entry=change.entry, text=previous.text)


def undone_changes(changes: Sequence[MemoryChange]) -> set[int]:
    """Returns the changes that are undone by an undo that is itself in effect."""
    undone: set[int] = set()
    for change in reversed(changes):
        if change.reverts and change.id not in undone:
            undone.add(change.reverts)
    return undone


def is_effective(change: MemoryChange) -> bool:
    return not change.held and change.action != "reject"
