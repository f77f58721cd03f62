"""Validates operations and turns them into steps on the entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.codec.values import Value, replace
from hermes.memory.conflicts import find_contradiction
from hermes.memory.entries import Action, MemoryEntry, MemoryRefusal, Operation, RefusedKind
from hermes.memory.format import (
    entries_size,
    has_delimiter,
    hidden_marker,
    normalise_entry,
    preview,
)

Scan = Callable[[str], str]


class MemoryStep(Value):
    """One change to make; entry 0 is a new entry."""

    action: Action
    entry: int
    text: str = ""


class MemoryPlan(Value):
    """Steps to make (none when nothing differs) and a message."""

    steps: tuple[MemoryStep, ...]
    message: str


class InvalidOperation(Exception):
    """An operation that cannot be applied; caught in this module."""

    def __init__(self, refused: MemoryRefusal) -> None:
        super().__init__(refused.error)
        self.refused = refused


def plan_operations(
    entries: Sequence[MemoryEntry],
    operations: Sequence[Operation],
    *,
    limit: int,
    scan: Scan,
    held: bool,
) -> MemoryPlan | MemoryRefusal:
    """Plans all operations or none. The limit applies to the result; held operations are checked
    but do not count yet."""
    draft = {entry.id: entry.text for entry in entries}
    messages: list[str] = []
    for number, operation in enumerate(operations, start=1):
        try:
            messages.append(_apply(operation, draft, entries, limit, scan, held))
        except InvalidOperation as problem:
            many = len(operations) > 1
            return replace(problem.refused, number=number) if many else problem.refused
    steps = _steps(entries, draft)
    if not held and (too_long := _too_long(entries, draft, limit)):
        return too_long
    return MemoryPlan(steps=steps, message=" ".join(dict.fromkeys(messages)))


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
    _check_content(content, limit, scan)
    if operation.action == "add":
        if content in draft.values():
            return "It already exists; nothing was added."
        if not held:
            _check_others(content, draft)
        draft[min(0, *draft, 0) - 1] = content
        return "Entry added."
    entry_id = _find_entry(operation.old_text, draft, entries)
    if content in (text for key, text in draft.items() if key != entry_id):
        del draft[entry_id]
        return "The new text already exists; the old entry was removed."
    draft[entry_id] = content
    return "Entry replaced."


def _check_others(content: str, draft: dict[int, str]) -> None:
    if other := find_contradiction(content, draft.values()):
        raise _problem(
            "conflict",
            f"Not added: it contradicts “{preview(other)}”. If the new one is right, use replace "
            "with that as old_text; if both are true, write one entry.",
            (preview(other),),
        )


def _check_content(content: str, limit: int, scan: Scan) -> None:
    if not content:
        raise _problem("usage", "content is missing: give the text to remember.")
    if has_delimiter(content):
        raise _problem("usage", "An entry cannot contain a line with only §; it separates entries.")
    if len(content) > limit:
        raise _problem(
            "limit", f"{len(content):,} characters exceed the limit for one entry; shorten it."
        )
    if found := scan(content):
        raise _problem(
            "threat", f"Blocked: the text matches the threat pattern '{found}' and is not kept."
        )


def _find_entry(old_text: str, draft: dict[int, str], entries: Sequence[MemoryEntry]) -> int:
    """Finds an entry by a unique part of its text or by its number."""
    wanted = normalise_entry(old_text)
    if not wanted:
        raise _problem("usage", "old_text is missing: give a part of the entry to change.")
    hidden = {hidden_marker(entry): entry.id for entry in entries if entry.finding}
    named = {f"m{key}": key for key in draft} | hidden
    if wanted in named and named[wanted] in draft:
        return named[wanted]
    for form in (lambda text: text, _loose):
        found = [key for key, text in draft.items() if form(wanted) in form(text)]
        exact = [key for key in found if form(draft[key]) == form(wanted)]
        if len(found) == 1 or exact:
            return (exact or found)[0]
        if found:
            raise _problem(
                "match",
                f"{len(found)} entries have this text; give a longer part of the one you mean.",
                tuple(preview(draft[key]) for key in found),
            )
    raise _problem("match", "No entry has this text; see current_entries.")


def _loose(text: str) -> str:
    return " ".join(text.casefold().split())


def _steps(entries: Sequence[MemoryEntry], draft: dict[int, str]) -> tuple[MemoryStep, ...]:
    steps: list[MemoryStep] = []
    for entry in entries:
        if entry.id not in draft:
            steps.append(MemoryStep(action="remove", entry=entry.id))
        elif draft[entry.id] != entry.text:
            steps.append(MemoryStep(action="replace", entry=entry.id, text=draft[entry.id]))
    steps += [
        MemoryStep(action="add", entry=0, text=text) for key, text in draft.items() if key < 0
    ]
    return tuple(steps)


def _too_long(
    entries: Sequence[MemoryEntry], draft: dict[int, str], limit: int
) -> MemoryRefusal | None:
    """Allows any change that shortens the file, even while it stays too long."""
    before, after = entries_size(entry.text for entry in entries), entries_size(draft.values())
    if after <= limit or after < before:
        return None
    error = (
        f"It would be {after:,} of {limit:,} characters. Consolidate: merge, shorten or remove "
        "entries of current_entries, in one call with operations, and try again."
    )
    return MemoryRefusal(kind="limit", error=error)


def _problem(kind: RefusedKind, error: str, matches: tuple[str, ...] = ()) -> InvalidOperation:
    return InvalidOperation(MemoryRefusal(kind=kind, error=error, matches=matches))
