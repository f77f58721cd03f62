"""The past of memory: what stood there at a time, and how a change is taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.core.errors import UsageError
from hermes.memory.entries import Change, Entry
from hermes.memory.planning import Step


def as_of(changes: Iterable[Change], at: float) -> list[Entry]:
    """The entries that were in force at that time, without what was forgotten since."""
    standing: dict[int, Entry] = {}
    for change in changes:
        if change.at > at:
            break
        fold(standing, change)
    return [standing[key] for key in sorted(standing)]


def fold(standing: dict[int, Entry], change: Change) -> None:
    """Held changes and refusals do nothing; an accepted one comes once more, as a change that
    settles it."""
    if change.held or change.action == "reject":
        return
    standing.pop(change.entry, None)
    if change.action != "remove" and not change.forgotten:
        standing[change.entry] = Entry(
            id=change.entry,
            target=change.target,
            text=change.text,
            change=change.id,
            since=change.at,
            finding=change.finding,
        )


def newest(changes: Sequence[Change]) -> tuple[Change, ...]:
    """What was done last and is still in force, newest first: the changes of one call or command.
    UsageError when there is nothing."""
    undone = taken_back(changes)
    standing = [
        each
        for each in reversed(changes)
        if takes_effect(each) and not each.reverts and each.id not in undone and not each.forgotten
    ]
    if not standing:
        raise UsageError("There is nothing to take back.")
    last = standing[0]
    return tuple(each for each in standing if (each.at, each.source) == (last.at, last.source))


def inverse(change: Change, life: Sequence[Change]) -> Step:
    """What takes a change back; `life` are all changes of its entry. UsageError when something
    came after it."""
    if not takes_effect(change):
        raise UsageError(f"c{change.id} has changed nothing that could be taken back.")
    undone = taken_back(life)
    if change.id in undone:
        raise UsageError(f"c{change.id} is taken back already.")
    later = [
        each
        for each in life
        if each.id > change.id and takes_effect(each) and not each.reverts and each.id not in undone
    ]
    if later:
        raise UsageError(f"c{later[-1].id} came after c{change.id}; take that back first.")
    before: dict[int, Entry] = {}
    for each in life:
        if each.id < change.id:
            fold(before, each)
    stood = before.get(change.entry)
    if stood is None:
        if change.action == "remove":
            raise UsageError(f"What c{change.id} removed was forgotten; it does not come back.")
        return Step(action="remove", entry=change.entry)
    if change.action == "remove":
        return Step(action="add", entry=change.entry, text=stood.text)
    return Step(action="replace", entry=change.entry, text=stood.text)


def taken_back(changes: Sequence[Change]) -> set[int]:
    """The changes that are undone, by an undo that is not undone itself."""
    undone: set[int] = set()
    for change in reversed(changes):
        if change.reverts and change.id not in undone:
            undone.add(change.reverts)
    return undone


def takes_effect(change: Change) -> bool:
    return not change.held and change.action != "reject"
