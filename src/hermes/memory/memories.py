"""The memory of one person: query, change, undo and forget."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound, UsageError
from hermes.core.scrub import PATIENCE_SECONDS
from hermes.core.world import World
from hermes.memory.entries import (
    OWNER,
    TARGETS,
    ChangeOutcome,
    ChangeSource,
    MemoryApplied,
    MemoryChange,
    MemoryEntry,
    MemoryLimits,
    MemoryRefusal,
    MemorySnapshot,
    Operation,
    Target,
    build_snapshot,
    entries_size,
    preview,
    split_entries,
)
from hermes.memory.planning import (
    MemoryPlan,
    MemoryStep,
    Scan,
    entries_at,
    is_effective,
    last_changes,
    plan_operations,
    undo_step,
    undone_changes,
)
from hermes.memory.store import MemoryOwner, MemoryStore

T = TypeVar("T")

FORGETS = "forgets"


class ForgetPlan(Value):
    """Texts to forget, the changes that hold them and the sources of those changes."""

    texts: tuple[str, ...]
    changes: tuple[int, ...]
    sources: tuple[ChangeSource, ...]


class Memories:
    """Safe across processes and tasks. `scan` returns the threat pattern that a text matches, or
    "". No file is created before the first entry."""

    def __init__(
        self,
        folder: Path,
        *,
        world: World,
        scan: Scan,
        scope: str = OWNER,
        limits: MemoryLimits | None = None,
        version: str = "",
    ) -> None:
        self.limits = limits or MemoryLimits()
        person = MemoryOwner(scope=scope, limits=self.limits, version=version)
        self._work = MemoryStore(folder, person, scan, world)
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._work.ledger.close()

    # Queries

    async def entries(self) -> tuple[MemoryEntry, ...]:
        return await self._query(lambda work: tuple(work.ledger.entries(work.scope)), ())

    async def snapshot(self, wanted: Sequence[Target] = TARGETS) -> MemorySnapshot:
        """Returns the memory block for a new session; it stays fixed for that session."""
        forgets = await self._query(_forgets, 0)
        return replace(build_snapshot(await self.entries(), wanted, self.limits), forgets=forgets)

    def is_outdated(self, taken: MemorySnapshot) -> bool:
        """Returns whether something was forgotten since, so that the snapshot must not be written
        any more."""
        return self._query_now(_forgets, 0) != taken.forgets

    async def changes(self) -> tuple[MemoryChange, ...]:
        """Oldest first."""
        return await self._query(lambda work: tuple(work.ledger.changes(work.scope)), ())

    async def pending(self) -> tuple[MemoryChange, ...]:
        """Returns held changes."""
        return await self._query(lambda work: tuple(work.ledger.open_changes(work.scope)), ())

    async def history_of(self, entry: int) -> tuple[MemoryChange, ...]:
        """Returns all changes of an entry, oldest first; NotFound."""
        mine = tuple(each for each in await self.changes() if each.entry == entry)
        if not mine:
            raise NotFound(f"There is no entry m{entry}; `hermes memory list --all` shows them.")
        return mine

    async def as_of(self, at: float) -> tuple[MemoryEntry, ...]:
        return tuple(entries_at(await self.changes(), at))

    async def resolve_entry(self, text: str) -> int:
        """Returns the entry id for m7, 7 or a part of the text; NotFound."""
        number = text.strip().removeprefix("m")
        if number.isdecimal():
            return (await self.history_of(int(number)))[0].entry
        wanted = " ".join(text.casefold().split())
        current = await self.entries()
        found = [each for each in current if wanted in " ".join(each.text.casefold().split())]
        if len(found) == 1:
            return found[0].id
        if not found:
            raise NotFound(f"No entry contains “{preview(text)}”.")
        near = tuple(f"m{each.id}  {preview(each.text)}" for each in found)
        raise NotFound("Several entries match; name one by its number.", near)

    # Changes

    async def change(
        self,
        target: Target,
        operations: Sequence[Operation],
        *,
        source: ChangeSource,
        key: str = "",
        held: str = "",
    ) -> ChangeOutcome:
        """Applies all operations or none. A key is applied once; `held` says why the change waits
        for a person."""

        def work(work: MemoryStore) -> ChangeOutcome:
            if key and (done := work.ledger.changes_of_call(key)) is not None:
                return MemoryApplied(
                    message="Already done.", changes=done, held=held, repeated=True
                )
            if drift := _drift(work, target, operations):
                return drift
            planned = plan_operations(
                work.ledger.entries(work.scope, target),
                operations,
                limit=self.limits.of(target),
                scan=work.scan,
                held=bool(held),
            )
            if isinstance(planned, MemoryRefusal):
                return planned
            return _record(work, target, planned, source, key, held)

        return await self._change(work)

    async def accept(self, number: int, *, source: ChangeSource) -> ChangeOutcome:
        """Applies a held change; NotFound."""

        def work(work: MemoryStore) -> ChangeOutcome:
            change = _held_change(work, number)
            assert change.action != "reject"
            step = MemoryStep(action=change.action, entry=change.entry, text=change.text)
            if refused := self._refusal(work, change, step):
                return refused
            work.ledger.settle(number)
            made = work.record(change.target, (step,), source, settles=number)
            return MemoryApplied(message=f"Accepted: {preview(change.text)}", changes=made)

        return await self._change_existing(work)

    async def reject(self, number: int, *, source: ChangeSource) -> ChangeOutcome:
        def work(work: MemoryStore) -> ChangeOutcome:
            change = _held_change(work, number)
            work.ledger.settle(number)
            at = work.ledger.next_time(work.world.clock.now())
            answer = MemoryChange(
                id=0,
                entry=change.entry,
                target=change.target,
                action="reject",
                text="",
                at=at,
                source=source,
                settles=number,
            )
            made = work.ledger.put_change(work.scope, answer)
            return MemoryApplied(message=f"Rejected: {preview(change.text)}", changes=(made,))

        return await self._change_existing(work)

    async def undo(self, number: int = 0, *, source: ChangeSource) -> tuple[MemoryChange, ...]:
        """Undoes a change or, for 0, the last group of changes. UsageError when a later change
        depends on it; NotFound."""

        def work(work: MemoryStore) -> tuple[MemoryChange, ...]:
            if not number:
                undone = last_changes(work.ledger.changes(work.scope))
            elif (change := work.ledger.change(work.scope, number)) is not None:
                undone = (change,)
            else:
                raise NotFound(f"There is no change c{number}; `hermes memory log` shows them.")
            for each in undone:
                self._take_back(work, each, source)
            return undone

        return await self._change_existing(work)

    async def undo_session(
        self, session_id: str, *, source: ChangeSource
    ) -> tuple[list[MemoryChange], list[MemoryChange]]:
        """Undoes all changes of a session, newest first; returns the undone changes and those that
        later changes depend on."""

        def work(work: MemoryStore) -> tuple[list[MemoryChange], list[MemoryChange]]:
            everything = work.ledger.changes(work.scope)
            undone = undone_changes(everything)
            mine = [
                each
                for each in reversed(everything)
                if each.source.session_id == session_id and each.id not in undone
            ]
            back: list[MemoryChange] = []
            kept: list[MemoryChange] = []
            for change in mine:
                if change.open:
                    work.ledger.settle(change.id)
                    back.append(change)
                elif is_effective(change) and not change.reverts and not change.forgotten:
                    try:
                        self._take_back(work, change, source)
                    except UsageError:
                        kept.append(change)
                    else:
                        back.append(change)
            return back, kept

        return await self._change_existing(work)

    async def clear(self, target: Target, *, source: ChangeSource) -> int:
        """Removes all entries of one file (undoable) and returns their number."""

        def work(work: MemoryStore) -> int:
            entries = work.ledger.entries(work.scope, target)
            steps = [MemoryStep(action="remove", entry=entry.id) for entry in entries]
            work.record(target, steps, source)
            return len(steps)

        return await self._change_existing(work)

    # Forgetting

    async def plan_forget(self, *, entry: int = 0, text: str = "") -> ForgetPlan:
        """Returns what would be forgotten: all versions of an entry, or all changes containing the
        text."""
        from hermes.memory.phrases import Phrases

        changes = await self.changes()
        mine = [each for each in changes if each.entry == entry] if entry else []
        texts = [each.text for each in mine if each.text] if entry else [text]
        phrases = Phrases(texts)
        also = [c for c in changes if c.text and phrases.remove_phrases(c.text) != c.text]
        found = {change.id: change for change in (*mine, *also)}
        return ForgetPlan(
            texts=tuple(dict.fromkeys((*texts, *(c.text for c in found.values() if c.text)))),
            changes=tuple(found),
            sources=tuple(dict.fromkeys(change.source for change in found.values())),
        )

    async def holders(self, undone: ForgetPlan) -> set[str]:
        """Returns the scopes that contain it now."""
        from hermes.memory.phrases import Phrases

        phrases = Phrases(undone.texts)
        return await self._query(lambda work: work.ledger.holders(phrases.remove_phrases), set())

    async def forget(self, undone: ForgetPlan) -> None:
        """Deletes the texts from the ledger and from this person's files; `wipe` then scrubs the
        disk."""
        from hermes.memory.phrases import Phrases

        phrases = Phrases(undone.texts)

        def work(work: MemoryStore) -> None:
            numbers = set(undone.changes)
            numbers |= {
                n for n, _, text, _ in work.ledger.texts() if phrases.remove_phrases(text) != text
            }
            for entry in work.ledger.entries(work.scope):
                if entry.change in numbers or phrases.remove_phrases(entry.text) != entry.text:
                    work.ledger.drop_entry(entry.id)
            work.ledger.forget_changes(numbers)
            work.ledger.put_fact(FORGETS, str(_forgets(work) + 1))
            work.ledger.forget_recalls(phrases.remove_phrases)

        if not self._work.is_untouched():
            await self._change(work)

    async def scrub(self, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """Scrubs the files; returns whether no forgotten text remains on disk."""
        return await self._query(lambda work: work.scrub(patience_seconds), True)

    # Recalled text, per message

    async def recalls_of(self, session_id: str) -> dict[int, tuple[bytes, str]]:
        """Returns the text added to messages of a session, by position."""
        return await self._query(lambda work: work.ledger.recalls(session_id), {})

    async def record_recall(self, session_id: str, place: int, digest: bytes, text: str) -> None:
        await self._change(lambda work: work.ledger.put_recall(session_id, place, digest, text))

    def _take_back(self, work: MemoryStore, change: MemoryChange, source: ChangeSource) -> None:
        step = undo_step(change, work.ledger.changes_of(change.entry))
        if step.action == "add" and step.text in work.texts(change.target):
            raise UsageError("The entry exists again already.")
        if refused := self._refusal(work, change, step):
            raise UsageError(refused.error)
        work.record(change.target, (step,), source, reverts=change.id, findings=work.scan)

    def _refusal(
        self, work: MemoryStore, change: MemoryChange, step: MemoryStep
    ) -> MemoryRefusal | None:
        """Returns a refusal when the step no longer applies."""
        current = {entry.id: entry for entry in work.ledger.entries(work.scope, change.target)}
        if step.action != "add" and step.entry not in current:
            gone = f"Entry m{step.entry} no longer exists; reject this change."
            return MemoryRefusal(kind="match", error=gone)
        texts = [entry.text for key, entry in current.items() if key != step.entry]
        limit = self.limits.of(change.target)
        if step.action != "remove" and entries_size((*texts, step.text)) > limit:
            full = f"It does not fit into {limit:,} characters; remove something first."
            return MemoryRefusal(kind="limit", error=full)
        return None

    async def _query(self, work: Callable[[MemoryStore], T], nothing: T) -> T:
        return await asyncio.to_thread(self._query_now, work, nothing)

    def _query_now(self, work: Callable[[MemoryStore], T], nothing: T) -> T:
        with self._lock:
            if self._work.is_untouched():
                return nothing
            if not self._work.is_current():
                with self._work.transaction():
                    pass
            return work(self._work)

    async def _change_existing(self, work: Callable[[MemoryStore], T]) -> T:
        """Runs a change; NotFound when memory is empty."""
        if self._work.is_untouched():
            raise NotFound("Nothing is remembered yet.")
        return await self._change(work)

    async def _change(self, work: Callable[[MemoryStore], T]) -> T:
        return await asyncio.to_thread(self._change_now, work)

    def _change_now(self, work: Callable[[MemoryStore], T]) -> T:
        with self._lock, self._work.transaction():
            return work(self._work)


def _record(
    work: MemoryStore,
    target: Target,
    planned: MemoryPlan,
    source: ChangeSource,
    key: str,
    held: str,
) -> MemoryApplied:
    made = work.record(target, planned.steps, source, held=held)
    if key:
        work.ledger.record_call(key, made)
    held = held if made else ""
    message = "It waits for approval." if held else planned.message
    return MemoryApplied(message=message, changes=made, held=held)


def _forgets(work: MemoryStore) -> int:
    return int(work.ledger.fact(FORGETS) or 0)


def _held_change(work: MemoryStore, number: int) -> MemoryChange:
    change = work.ledger.change(work.scope, number)
    if change is None or not change.open:
        waiting = tuple(
            f"c{each.id}  {preview(each.text)}" for each in work.ledger.open_changes(work.scope)
        )
        raise NotFound(f"No held change c{number}.", waiting)
    return change


def _drift(
    work: MemoryStore, target: Target, operations: Sequence[Operation]
) -> MemoryRefusal | None:
    """Refuses to rewrite a file with an entry over the limit, except to add an entry or to change
    that entry."""
    found, limit = work.initial_content(target), work.person.limits.of(target)
    if found is None or (len(operations) == 1 and operations[0].action == "add"):
        return None
    large = [text for text in split_entries(found.text) if len(text) > limit]
    if not large or all(_is_about(each, large) for each in operations):
        return None
    copy = work.files.keep_copy(target, work.world.clock.now())
    error = (
        f"{work.files.path(target)} has an entry beyond the limit of {limit:,} characters, so "
        f"nothing was changed; a copy is in {copy.name}. Ask the user to shorten it, or change "
        "that entry alone."
    )
    return MemoryRefusal(kind="drift", error=error)


def _is_about(operation: Operation, texts: Sequence[str]) -> bool:
    old = operation.old_text.strip()
    return bool(old) and any(old in text for text in texts)
