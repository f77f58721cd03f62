"""The memory of one person: query, change, undo and forget."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound, UsageError
from hermes.core.messages import WORKSPACE
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
    MemoryStep,
    Scan,
    entries_at,
    is_effective,
    last_changes,
    plan_operations,
    undo_step,
    undone_changes,
)
from hermes.memory.store import MemoryStore

P = ParamSpec("P")
T = TypeVar("T")

FORGETS = "forgets"


class ForgetPlan(Value):
    """Texts to forget, the changes that hold them and the sources of those changes."""

    texts: tuple[str, ...]
    changes: tuple[int, ...]
    sources: tuple[ChangeSource, ...]


def _change(
    *, existing: bool = False
) -> Callable[
    [Callable[Concatenate[Memories, P], T]],
    Callable[Concatenate[Memories, P], Coroutine[Any, Any, T]],
]:
    """Decorate a method so that it runs in a thread, in one transaction. With `existing`, the
    method raises NotFound when memory is empty."""

    def decorate(
        method: Callable[Concatenate[Memories, P], T],
    ) -> Callable[Concatenate[Memories, P], Coroutine[Any, Any, T]]:
        @wraps(method)
        async def run(memories: Memories, /, *args: P.args, **options: P.kwargs) -> T:
            if existing and memories._store.is_untouched():
                raise NotFound("Nothing is remembered yet.")

            def change() -> T:
                with memories._lock, memories._store.transaction():
                    return method(memories, *args, **options)

            return await asyncio.to_thread(change)

        return run

    return decorate


class Memories:
    """The memory of one person, safe across processes and tasks. `scan` returns the threat pattern
    that a text matches, or "". No file is created before the first entry."""

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
        self._store = MemoryStore(folder, world=world, scan=scan, scope=scope, version=version)
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._store.ledger.close()

    # Queries

    async def entries(self) -> tuple[MemoryEntry, ...]:
        return await self._query(lambda store: tuple(store.ledger.entries()), ())

    async def snapshot(self, wanted: Sequence[Target] = TARGETS) -> MemorySnapshot:
        """Return the memory block for a new session; it stays fixed for that session."""
        forgets = await self._query(_forgets, 0)
        entries = await self.entries()
        built = build_snapshot(entries, wanted, self.limits)
        shown = frozenset(each.change for each in entries if each.id in built.ids)
        none: tuple[str, ...] = ()
        origins = await self._query(lambda store: store.ledger.origins(shown), none)
        # A person has read and approved each of them, so they count like files.
        named = tuple(f"{WORKSPACE}memory of {each.removeprefix(WORKSPACE)}" for each in origins)
        return replace(built, forgets=forgets, origins=named)

    def is_outdated(self, taken: MemorySnapshot) -> bool:
        """Return whether something was forgotten since the snapshot, which then must not be
        written."""
        return self._query_now(_forgets, 0) != taken.forgets

    async def changes(self) -> tuple[MemoryChange, ...]:
        """Return all changes, oldest first."""
        return await self._query(lambda store: tuple(store.ledger.changes()), ())

    async def pending(self) -> tuple[MemoryChange, ...]:
        """Return the changes that wait for approval."""
        return await self._query(lambda store: tuple(store.ledger.changes(open=1)), ())

    async def history_of(self, entry: int) -> tuple[MemoryChange, ...]:
        """Return all changes of an entry, oldest first. Raises NotFound."""
        mine = tuple(each for each in await self.changes() if each.entry == entry)
        if not mine:
            raise NotFound(f"There is no entry m{entry}; `hermes memory list --all` shows them.")
        return mine

    async def as_of(self, at: float) -> tuple[MemoryEntry, ...]:
        return tuple(entries_at(await self.changes(), at))

    async def resolve_entry(self, text: str) -> int:
        """Return the entry id for m7, 7 or a part of the text. Raises NotFound."""
        number = text.strip().removeprefix("m")
        if number.isdecimal():
            return (await self.history_of(int(number)))[0].entry
        wanted = " ".join(text.casefold().split())
        current = await self.entries()
        found = [each for each in current if wanted in " ".join(each.text.casefold().split())]
        if len(found) == 1:
            return found[0].id
        if not found:
            raise NotFound(f"No entry contains “{preview(text)}”; `hermes memory list` shows all.")
        near = tuple(f"m{each.id}  {preview(each.text)}" for each in found)
        raise NotFound("Several entries match; name one by its number.", near)

    # Changes

    @_change()
    def change(
        self,
        target: Target,
        operations: Sequence[Operation],
        *,
        source: ChangeSource,
        key: str = "",
        held: str = "",
    ) -> ChangeOutcome:
        """Apply all operations or none. A key is applied once; `held` says why the change waits for
        a person."""
        ledger = self._store.ledger
        if key and (done := ledger.changes_of_call(key)) is not None:
            return MemoryApplied(message="Already done.", changes=done, held=held, repeated=True)
        if drift := self._drift(target, operations):
            return drift
        planned = plan_operations(
            ledger.entries(target),
            operations,
            limit=self.limits.of(target),
            scan=self._store.scan,
            held=bool(held),
        )
        if isinstance(planned, MemoryRefusal):
            return planned
        steps, message = planned
        made = self._store.record(target, steps, source, held=held)
        if key:
            ledger.record_call(key, made)
        if held and made:
            return MemoryApplied(message="It waits for approval.", changes=made, held=held)
        return MemoryApplied(message=message, changes=made)

    @_change(existing=True)
    def accept(self, number: int, *, source: ChangeSource) -> ChangeOutcome:
        """Apply a held change. Raises NotFound."""
        change = self._held_change(number)
        assert change.action != "reject"
        step = MemoryStep(action=change.action, entry=change.entry, text=change.text)
        if refused := self._refusal(change, step):
            return refused
        self._store.ledger.settle(number)
        made = self._store.record(change.target, (step,), source, settles=number)
        return MemoryApplied(message=f"Accepted: {preview(change.text)}", changes=made)

    @_change(existing=True)
    def reject(self, number: int, *, source: ChangeSource) -> ChangeOutcome:
        change, ledger = self._held_change(number), self._store.ledger
        ledger.settle(number)
        answer = MemoryChange(
            id=0,
            entry=change.entry,
            target=change.target,
            action="reject",
            text="",
            at=ledger.next_time(self._store.world.clock.now()),
            source=source,
            settles=number,
        )
        made = ledger.put_change(answer)
        return MemoryApplied(message=f"Rejected: {preview(change.text)}", changes=(made,))

    @_change(existing=True)
    def undo(self, number: int = 0, *, source: ChangeSource) -> tuple[MemoryChange, ...]:
        """Undo a change or, for 0, the last group of changes. Raises NotFound, or UsageError when a
        later change depends on it."""
        ledger = self._store.ledger
        if not number:
            undone = last_changes(ledger.changes())
        elif not (undone := tuple(ledger.changes(change=number))):
            raise NotFound(f"There is no change c{number}; `hermes memory log` shows them.")
        for each in undone:
            self._take_back(each, source)
        return undone

    @_change(existing=True)
    def undo_session(
        self, session_id: str, *, source: ChangeSource
    ) -> tuple[list[MemoryChange], list[MemoryChange]]:
        """Undo all changes of a session, newest first; return the undone changes and those that
        later changes depend on."""
        everything = self._store.ledger.changes()
        undone = undone_changes(everything)
        back: list[MemoryChange] = []
        kept: list[MemoryChange] = []
        for change in reversed(everything):
            if change.source.session_id != session_id or change.id in undone:
                continue
            if change.open:
                self._store.ledger.settle(change.id)
                back.append(change)
            elif is_effective(change) and not change.reverts and not change.forgotten:
                try:
                    self._take_back(change, source)
                except UsageError:
                    kept.append(change)
                else:
                    back.append(change)
        return back, kept

    @_change(existing=True)
    def clear(self, target: Target, *, source: ChangeSource) -> int:
        """Remove all entries of one file (undoable) and return their number."""
        entries = self._store.ledger.entries(target)
        steps = [MemoryStep(action="remove", entry=entry.id) for entry in entries]
        self._store.record(target, steps, source)
        return len(steps)

    # Forgetting

    async def plan_forget(self, *, entry: int = 0, text: str = "") -> ForgetPlan:
        """Return what would be forgotten: all versions of an entry, or all changes containing the
        text."""
        from hermes.memory.phrases import Phrases

        changes = await self.changes()
        mine = [each for each in changes if each.entry == entry] if entry else []
        texts = [each.text for each in mine if each.text] if entry else [text]
        phrases = Phrases(texts)
        also = [c for c in changes if c.text and phrases.remove_phrases(c.text) != c.text]
        affected = {change.id: change for change in (*mine, *also)}
        return ForgetPlan(
            texts=tuple(dict.fromkeys((*texts, *(c.text for c in affected.values() if c.text)))),
            changes=tuple(affected),
            sources=tuple(dict.fromkeys(change.source for change in affected.values())),
        )

    async def holders(self, plan: ForgetPlan) -> set[str]:
        """Return the scopes whose entries contain a text of the plan now."""
        from hermes.memory.phrases import Phrases

        phrases = Phrases(plan.texts)
        return await self._query(lambda store: store.ledger.holders(phrases.remove_phrases), set())

    async def forget(self, plan: ForgetPlan) -> None:
        """Delete the texts from the ledger and from this person's files; `scrub` then scrubs the
        disk."""
        if not self._store.is_untouched():
            await self._forget(plan)

    @_change()
    def _forget(self, plan: ForgetPlan) -> None:
        from hermes.memory.phrases import Phrases

        ledger, remove_phrases = self._store.ledger, Phrases(plan.texts).remove_phrases
        numbers = ledger.forget_changes(plan.changes, remove_phrases)
        for entry in ledger.entries():
            if entry.change in numbers or remove_phrases(entry.text) != entry.text:
                ledger.drop_entry(entry.id)
        ledger.put_fact(FORGETS, str(_forgets(self._store) + 1))
        ledger.forget_recalls(remove_phrases)

    async def scrub(self, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """Scrub the files; return whether no forgotten text remains on disk."""
        return await self._query(lambda store: store.scrub(patience_seconds), True)

    # Recalled text, per message

    async def recalls_of(self, session_id: str) -> dict[int, tuple[bytes, str]]:
        """Return the text added to messages of a session, by position."""
        return await self._query(lambda store: store.ledger.recalls(session_id), {})

    @_change()
    def record_recall(self, session_id: str, index: int, digest: bytes, text: str) -> None:
        self._store.ledger.put_recall(session_id, index, digest, text)

    def _held_change(self, number: int) -> MemoryChange:
        waiting = {each.id: each for each in self._store.ledger.changes(open=1)}
        if number not in waiting:
            near = tuple(f"c{id}  {preview(each.text)}" for id, each in waiting.items())
            raise NotFound(
                f"There is no pending change c{number}; see `hermes memory pending`.", near
            )
        return waiting[number]

    def _take_back(self, change: MemoryChange, source: ChangeSource) -> None:
        store = self._store
        step = undo_step(change, store.ledger.changes(entry=change.entry))
        if step.action == "add" and step.text in store.texts(change.target):
            raise UsageError("The entry already exists again.")
        if refused := self._refusal(change, step):
            raise UsageError(refused.error)
        store.record(change.target, (step,), source, reverts=change.id, findings=store.scan)

    def _refusal(self, change: MemoryChange, step: MemoryStep) -> MemoryRefusal | None:
        """Return a refusal when the step no longer applies."""
        current = {entry.id: entry for entry in self._store.ledger.entries(change.target)}
        if step.action != "add" and step.entry not in current:
            gone = f"Entry m{step.entry} no longer exists; reject this change."
            return MemoryRefusal(kind="match", error=gone)
        texts = [entry.text for key, entry in current.items() if key != step.entry]
        limit = self.limits.of(change.target)
        if step.action != "remove" and entries_size((*texts, step.text)) > limit:
            full = f"It does not fit into {limit:,} characters; remove something first."
            return MemoryRefusal(kind="limit", error=full)
        return None

    def _drift(self, target: Target, operations: Sequence[Operation]) -> MemoryRefusal | None:
        """Return a refusal to rewrite a file with an entry over the limit, unless the operations
        only add an entry or change that entry."""
        content, limit = self._store.initial_content(target), self.limits.of(target)
        if content is None or (len(operations) == 1 and operations[0].action == "add"):
            return None
        large = [text for text in split_entries(content.text) if len(text) > limit]
        old_texts = [each.old_text.strip() for each in operations]
        if not large or all(old and any(old in text for text in large) for old in old_texts):
            return None
        copy = self._store.keep_copy(target)
        error = (
            f"{self._store.path(target)} has an entry beyond the limit of {limit:,} characters, so "
            f"nothing was changed; a copy is in {copy.name}. Ask the user to shorten it, or change "
            "that entry alone."
        )
        return MemoryRefusal(kind="drift", error=error)

    async def _query(self, action: Callable[[MemoryStore], T], nothing: T) -> T:
        return await asyncio.to_thread(self._query_now, action, nothing)

    def _query_now(self, action: Callable[[MemoryStore], T], nothing: T) -> T:
        with self._lock:
            if self._store.is_untouched():
                return nothing
            if not self._store.is_current():
                with self._store.transaction():
                    pass
            return action(self._store)


def _forgets(store: MemoryStore) -> int:
    return int(store.ledger.fact(FORGETS) or 0)
