"""Validates operations, finds contradictions and computes undo steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from hermes.codec.values import Value, replace
from hermes.core.errors import UsageError
from hermes.memory.entries import (
    Action,
    MemoryChange,
    MemoryEntry,
    MemoryRefusal,
    Operation,
    RefusedKind,
    entries_size,
    has_delimiter,
    hidden_marker,
    normalise_entry,
    preview,
)

_STATEMENT = (
    r"^(?P<what>[^\n.;]{3,80}?)\s*(?:\b(?:is|are|was|lives? in|works? (?:at|for)|runs? on"
    r"|listens? on|is (?:called|named|at|in|on))\b|[:=])\s*(?P<value>[^\n]{1,60}?)\.?$"
)
_SMALL = frozenset({"the", "a", "an", "my", "our", "their", "his", "her", "user's", "users"})
_SINGLE = frozenset(
    "name port birthday address email phone timezone version language editor url host hostname "
    "city country employer job model branch shell password username surname age database".split()
)
_NAMED = r"\d|[A-Z]|[\"'`“]"
_NAMING = ("called", "named")
_LEADING = frozenset({"in", "on", "at", "called", "named", "for", "by", "with", "from", "to"})


def find_contradiction(text: str, others: Iterable[str]) -> str:
    """Return the first other entry that the text contradicts, or "". Only short statements about
    the same subject count. Their values must be names or numbers, or their subject must have only
    one possible value, because a false alarm costs a model call and may block a valid entry."""
    statement = _parse_statement(text)
    if statement is None:
        return ""
    what, link, value = statement
    for other in others:
        existing = _parse_statement(other)
        if existing is None or existing[0] != what or existing[1] != link:
            continue
        values = (value, existing[2])
        if value.casefold() == existing[2].casefold():
            continue
        first, second = (re.sub(r"\d+", "#", each) for each in values)
        are_names = len(what) >= 2 and all(re.search(_NAMED, each) for each in values)
        if link in _NAMING or what[-1] in _SINGLE or first == second or are_names:
            return other
    return ""


def _parse_statement(text: str) -> tuple[tuple[str, ...], str, str] | None:
    """Parse a statement into its subject, its preposition and its value."""
    found = re.match(_STATEMENT, " ".join(text.split()), re.IGNORECASE)
    if found is None:
        return None
    words = re.findall(r"[\w'’-]+", found["what"].casefold().replace("’", "'"))
    what = tuple(word for word in words if word not in _SMALL)
    value = found["value"].strip()
    first, _, rest = value.partition(" ")
    link = first.casefold() if first.casefold() in _LEADING and rest else ""
    value = rest if link else value
    return (what, link, value) if what and len(value.split()) <= 4 else None


Scan = Callable[[str], str]


class MemoryStep(Value):
    """One change to make; entry 0 is a new entry."""

    action: Action
    entry: int
    text: str = ""


class InvalidOperation(Exception):
    """An operation that cannot be applied; caught in this module."""

    def __init__(self, kind: RefusedKind, error: str, matches: tuple[str, ...] = ()) -> None:
        super().__init__(error)
        self.refused = MemoryRefusal(kind=kind, error=error, matches=matches)


def plan_operations(
    entries: Sequence[MemoryEntry],
    operations: Sequence[Operation],
    *,
    limit: int,
    scan: Scan,
    held: bool,
) -> tuple[tuple[MemoryStep, ...], str] | MemoryRefusal:
    """Plan all operations or none; return the steps (none when nothing differs) and a message. The
    limit applies to the result; held operations are checked but do not count yet."""
    draft = {entry.id: entry.text for entry in entries}
    messages: list[str] = []
    for number, operation in enumerate(operations, start=1):
        try:
            messages.append(_apply(operation, draft, entries, limit, scan, held))
        except InvalidOperation as problem:
            many = len(operations) > 1
            return replace(problem.refused, number=number) if many else problem.refused
    before, after = entries_size(entry.text for entry in entries), entries_size(draft.values())
    # Any change that shortens the file is allowed, even while it stays too long.
    if not held and after > limit and after >= before:
        error = (
            f"It would be {after:,} of {limit:,} characters. Consolidate: merge, shorten or remove "
            "entries of current_entries, in one call with operations, and try again."
        )
        return MemoryRefusal(kind="limit", error=error)
    steps: list[MemoryStep] = []
    for entry in entries:
        if entry.id not in draft:
            steps.append(MemoryStep(action="remove", entry=entry.id))
        elif draft[entry.id] != entry.text:
            steps.append(MemoryStep(action="replace", entry=entry.id, text=draft[entry.id]))
    steps += [
        MemoryStep(action="add", entry=0, text=text) for key, text in draft.items() if key < 0
    ]
    return tuple(steps), " ".join(dict.fromkeys(messages))


def _apply(
    operation: Operation,
    draft: dict[int, str],
    entries: Sequence[MemoryEntry],
    limit: int,
    scan: Scan,
    held: bool,
) -> str:
    content = normalise_entry(operation.content)
    if operation.action == "remove":
        del draft[_find_entry(operation.old_text, draft, entries)]
        return "Entry removed."
    if not content:
        raise InvalidOperation("usage", "content is missing: give the text to remember.")
    if has_delimiter(content):
        error = "An entry cannot contain a line with only §; it separates entries."
        raise InvalidOperation("usage", error)
    if len(content) > limit:
        error = f"{len(content):,} characters exceed the limit for one entry; shorten it."
        raise InvalidOperation("limit", error)
    if found := scan(content):
        error = f"Blocked: the text matches the threat pattern '{found}' and is not kept."
        raise InvalidOperation("threat", error)
    if operation.action == "add":
        if content in draft.values():
            return "It already exists; nothing was added."
        if not held and (other := find_contradiction(content, draft.values())):
            error = (
                f"Not added: it contradicts “{preview(other)}”. If the new one is right, use "
                "replace with that as old_text; if both are true, write one entry."
            )
            raise InvalidOperation("conflict", error, (preview(other),))
        draft[min(0, *draft, 0) - 1] = content
        return "Entry added."
    entry_id = _find_entry(operation.old_text, draft, entries)
    if content in (text for key, text in draft.items() if key != entry_id):
        del draft[entry_id]
        return "The new text already exists; the old entry was removed."
    draft[entry_id] = content
    return "Entry replaced."


def _find_entry(old_text: str, draft: dict[int, str], entries: Sequence[MemoryEntry]) -> int:
    """Find an entry by a unique part of its text or by its number."""
    wanted = normalise_entry(old_text)
    if not wanted:
        raise InvalidOperation("usage", "old_text is missing: give a part of the entry to change.")
    hidden = {hidden_marker(entry): entry.id for entry in entries if entry.finding}
    named = {f"m{key}": key for key in draft} | hidden
    if wanted in named and named[wanted] in draft:
        return named[wanted]
    for form in (lambda text: text, lambda text: " ".join(text.casefold().split())):
        matches = [key for key, text in draft.items() if form(wanted) in form(text)]
        exact = [key for key in matches if form(draft[key]) == form(wanted)]
        if len(matches) == 1 or exact:
            return (exact or matches)[0]
        if matches:
            raise InvalidOperation(
                "match",
                f"{len(matches)} entries have this text; give a longer part of the one you mean.",
                tuple(preview(draft[key]) for key in matches),
            )
    raise InvalidOperation("match", "No entry has this text; see current_entries.")


def entries_at(changes: Iterable[MemoryChange], at: float) -> list[MemoryEntry]:
    """Return the entries at that time, without entries forgotten since."""
    current: dict[int, MemoryEntry] = {}
    for change in changes:
        if change.at > at:
            break
        apply_change(current, change)
    return [current[key] for key in sorted(current)]


def apply_change(current: dict[int, MemoryEntry], change: MemoryChange) -> None:
    """Apply a change. Held and rejected changes have no effect; an accepted change is applied by a
    second change that settles it."""
    if change.held or change.action == "reject":
        return
    current.pop(change.entry, None)
    if change.action != "remove" and not change.forgotten:
        current[change.entry] = entry_after(change, change.id)


def entry_after(change: MemoryChange, number: int) -> MemoryEntry:
    """Return the entry that a change with this number leaves behind."""
    return MemoryEntry(
        id=change.entry,
        target=change.target,
        text=change.text,
        change=number,
        since=change.at,
        finding=change.finding,
    )


def last_changes(changes: Sequence[MemoryChange]) -> tuple[MemoryChange, ...]:
    """Return the changes of the last call or command that are still in effect, newest first. Raises
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
    """Return the step that undoes a change; `history` holds all changes of its entry. Raises
    UsageError when a later change depends on it."""
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
        newest = f"c{later[-1].id}"
        raise UsageError(
            f"{newest} changed the same entry after c{change.id}; undo {newest} first."
        )
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
    """Return the changes that are undone by an undo that is itself in effect."""
    undone: set[int] = set()
    for change in reversed(changes):
        if change.reverts and change.id not in undone:
            undone.add(change.reverts)
    return undone


def is_effective(change: MemoryChange) -> bool:
    return not change.held and change.action != "reject"
