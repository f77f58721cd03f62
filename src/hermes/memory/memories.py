"""The memory of one person: what is remembered, changed, looked up, taken back and forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound, UsageError
from hermes.core.wiping import PATIENCE_SECONDS
from hermes.core.world import World
from hermes.memory import history
from hermes.memory.entries import (
    OWNER,
    TARGETS,
    Applied,
    Change,
    Entry,
    Limits,
    Operation,
    Outcome,
    Refused,
    Snapshot,
    Source,
    Target,
)
from hermes.memory.format import preview, size, snapshot, split
from hermes.memory.planning import Planned, Scan, Step, plan
from hermes.memory.work import Person, Work

T = TypeVar("T")

FORGETS = "forgets"


class Doomed(Value):
    """What forgetting is about: the texts, the changes that hold them and where they come from."""

    texts: tuple[str, ...]
    changes: tuple[int, ...]
    sources: tuple[Source, ...]


class Memories:
    """Safe to use from several processes and tasks at once. `scan` names the threat pattern that a
    text matches, "" for none. Nothing is made before something is remembered."""

    def __init__(
        self,
        folder: Path,
        *,
        world: World,
        scan: Scan,
        scope: str = OWNER,
        limits: Limits | None = None,
        version: str = "",
    ) -> None:
        self.limits = limits or Limits()
        person = Person(scope=scope, limits=self.limits, version=version)
        self._work = Work(folder, person, scan, world)
        self._turn = threading.Lock()

    def close(self) -> None:
        with self._turn:
            self._work.ledger.close()

    # Looking

    async def entries(self) -> tuple[Entry, ...]:
        return await self._looking(lambda work: tuple(work.ledger.entries(work.scope)), ())

    async def snapshot(self, wanted: Sequence[Target] = TARGETS) -> Snapshot:
        """What a session that opens now is told; it does not change with memory."""
        forgets = await self._looking(_forgets, 0)
        return replace(snapshot(await self.entries(), wanted, self.limits), forgets=forgets)

    def is_outdated(self, taken: Snapshot) -> bool:
        """Whether something was forgotten since, so that nobody may write it down any more."""
        return self._look(_forgets, 0) != taken.forgets

    async def changes(self) -> tuple[Change, ...]:
        """Oldest first."""
        return await self._looking(lambda work: tuple(work.ledger.changes(work.scope)), ())

    async def pending(self) -> tuple[Change, ...]:
        """What waits for a person."""
        return await self._looking(lambda work: tuple(work.ledger.open_changes(work.scope)), ())

    async def life(self, entry: int) -> tuple[Change, ...]:
        """All changes of an entry, oldest first; NotFound."""
        mine = tuple(each for each in await self.changes() if each.entry == entry)
        if not mine:
            raise NotFound(f"There is no entry m{entry}; `hermes memory list --all` shows them.")
        return mine

    async def as_of(self, at: float) -> tuple[Entry, ...]:
        """What was in force at that time."""
        return tuple(history.as_of(await self.changes(), at))

    async def meant(self, text: str) -> int:
        """The number of the entry that somebody names: m7, 7, or a part of its text; NotFound."""
        number = text.strip().removeprefix("m")
        if number.isdecimal():
            return (await self.life(int(number)))[0].entry
        wanted = " ".join(text.casefold().split())
        standing = await self.entries()
        found = [each for each in standing if wanted in " ".join(each.text.casefold().split())]
        if len(found) == 1:
            return found[0].id
        if not found:
            raise NotFound(f"Nothing that is remembered says “{preview(text)}”.")
        near = tuple(f"m{each.id}  {preview(each.text)}" for each in found)
        raise NotFound("Several entries say that; name one by its number.", near)

    # Changing

    async def change(
        self,
        target: Target,
        operations: Sequence[Operation],
        *,
        source: Source,
        key: str = "",
        held: str = "",
    ) -> Outcome:
        """All operations or none. The same key is carried out once; `held` says why it has to wait
        for a person."""

        def work(work: Work) -> Outcome:
            if key and (done := work.ledger.done(key)) is not None:
                return Applied(message="Done already.", changes=done, held=held, repeated=True)
            if drift := _drift(work, target, operations):
                return drift
            planned = plan(
                work.ledger.entries(work.scope, target),
                operations,
                limit=self.limits.of(target),
                scan=work.scan,
                held=bool(held),
            )
            if isinstance(planned, Refused):
                return planned
            return _recorded(work, target, planned, source, key, held)

        return await self._changing(work)

    async def accept(self, number: int, *, source: Source) -> Outcome:
        """What was held is done now; NotFound."""

        def work(work: Work) -> Outcome:
            change = _waiting(work, number)
            assert change.action != "reject"
            step = Step(action=change.action, entry=change.entry, text=change.text)
            if refused := self._is_past(work, change, step):
                return refused
            work.ledger.settle(number)
            made = work.record(change.target, (step,), source, settles=number)
            return Applied(message=f"Accepted: {preview(change.text)}", changes=made)

        return await self._correcting(work)

    async def reject(self, number: int, *, source: Source) -> Outcome:
        def work(work: Work) -> Outcome:
            change = _waiting(work, number)
            work.ledger.settle(number)
            at = work.ledger.moment(work.world.clock.now())
            answer = Change(
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
            return Applied(message=f"Rejected: {preview(change.text)}", changes=(made,))

        return await self._correcting(work)

    async def undo(self, number: int = 0, *, source: Source) -> tuple[Change, ...]:
        """Take back a change or, for 0, all that was done last in one go; by changes of their own.
        UsageError when something came after it, NotFound."""

        def work(work: Work) -> tuple[Change, ...]:
            if not number:
                doomed = history.newest(work.ledger.changes(work.scope))
            elif (change := work.ledger.change(work.scope, number)) is not None:
                doomed = (change,)
            else:
                raise NotFound(f"There is no change c{number}; `hermes memory log` shows them.")
            for each in doomed:
                self._take_back(work, each, source)
            return doomed

        return await self._correcting(work)

    async def undo_session(
        self, session_id: str, *, source: Source
    ) -> tuple[list[Change], list[Change]]:
        """Take back all that came from a session, newest first; what was taken back, and what
        stays because something else was built on it."""

        def work(work: Work) -> tuple[list[Change], list[Change]]:
            everything = work.ledger.changes(work.scope)
            undone = history.taken_back(everything)
            mine = [
                each
                for each in reversed(everything)
                if each.source.session_id == session_id and each.id not in undone
            ]
            back: list[Change] = []
            kept: list[Change] = []
            for change in mine:
                if change.open:
                    work.ledger.settle(change.id)
                    back.append(change)
                elif history.takes_effect(change) and not change.reverts and not change.forgotten:
                    try:
                        self._take_back(work, change, source)
                    except UsageError:
                        kept.append(change)
                    else:
                        back.append(change)
            return back, kept

        return await self._correcting(work)

    async def clear(self, target: Target, *, source: Source) -> int:
        """Remove everything of one file, in a way that can be undone; how much it was."""

        def work(work: Work) -> int:
            entries = work.ledger.entries(work.scope, target)
            steps = [Step(action="remove", entry=entry.id) for entry in entries]
            work.record(target, steps, source)
            return len(steps)

        return await self._correcting(work)

    # Forgetting

    async def doomed(self, *, entry: int = 0, text: str = "") -> Doomed:
        """What would be forgotten: all versions of an entry, or all that says this text."""
        from hermes.memory.phrases import Phrases

        changes = await self.changes()
        mine = [each for each in changes if each.entry == entry] if entry else []
        texts = [each.text for each in mine if each.text] if entry else [text]
        phrases = Phrases(texts)
        also = [c for c in changes if c.text and phrases.erased(c.text) != c.text]
        found = {change.id: change for change in (*mine, *also)}
        return Doomed(
            texts=tuple(dict.fromkeys((*texts, *(c.text for c in found.values() if c.text)))),
            changes=tuple(found),
            sources=tuple(dict.fromkeys(change.source for change in found.values())),
        )

    async def holders(self, doomed: Doomed) -> set[str]:
        """The scopes in which it stands now, be it this one or not."""
        from hermes.memory.phrases import Phrases

        phrases = Phrases(doomed.texts)
        return await self._looking(lambda work: work.ledger.holders(phrases.erased), set())

    async def forget(self, doomed: Doomed) -> None:
        """Take the texts out of the ledger and this person's files, so that nobody finds them
        there; `wipe` takes them off the disk."""
        from hermes.memory.phrases import Phrases

        phrases = Phrases(doomed.texts)

        def work(work: Work) -> None:
            numbers = set(doomed.changes)
            numbers |= {n for n, _, text, _ in work.ledger.texts() if phrases.erased(text) != text}
            for entry in work.ledger.entries(work.scope):
                if entry.change in numbers or phrases.erased(entry.text) != entry.text:
                    work.ledger.drop_entry(entry.id)
            work.ledger.forget(numbers)
            work.ledger.put_fact(FORGETS, str(_forgets(work) + 1))
            work.ledger.erase_recalls(phrases.erased)

        if not self._work.is_untouched():
            await self._changing(work)

    async def wipe(self, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """Whether no page on the disk has what was forgotten, see `core.wiping`."""
        return await self._looking(lambda work: work.wipe(patience_seconds), True)

    # Recalled beside a message, see `core` prompts

    async def recalled(self, session_id: str) -> dict[int, tuple[bytes, str]]:
        """What was added to messages of a session, by their place in it."""
        return await self._looking(lambda work: work.ledger.recalls(session_id), {})

    async def note_recalled(self, session_id: str, place: int, said: bytes, text: str) -> None:
        await self._changing(lambda work: work.ledger.put_recall(session_id, place, said, text))

    # Inside

    def _take_back(self, work: Work, change: Change, source: Source) -> None:
        step = history.inverse(change, work.ledger.changes_of(change.entry))
        if step.action == "add" and step.text in work.texts(change.target):
            raise UsageError("It is remembered again already.")
        if refused := self._is_past(work, change, step):
            raise UsageError(refused.error)
        work.record(change.target, (step,), source, reverts=change.id, findings=work.scan)

    def _is_past(self, work: Work, change: Change, step: Step) -> Refused | None:
        """Whether a step cannot be made any more as things are now."""
        standing = {entry.id: entry for entry in work.ledger.entries(work.scope, change.target)}
        if step.action != "add" and step.entry not in standing:
            gone = f"The entry m{step.entry} that this is about is gone; reject it."
            return Refused(kind="match", error=gone)
        texts = [entry.text for key, entry in standing.items() if key != step.entry]
        limit = self.limits.of(change.target)
        if step.action != "remove" and size((*texts, step.text)) > limit:
            full = f"There is no room for it within {limit:,} characters; remove something first."
            return Refused(kind="limit", error=full)
        return None

    async def _looking(self, work: Callable[[Work], T], nothing: T) -> T:
        return await asyncio.to_thread(self._look, work, nothing)

    def _look(self, work: Callable[[Work], T], nothing: T) -> T:
        with self._turn:
            if self._work.is_untouched():
                return nothing
            if not self._work.is_current():
                with self._work.changing():
                    pass
            return work(self._work)

    async def _correcting(self, work: Callable[[Work], T]) -> T:
        """A change of what is there; NotFound where nothing ever was."""
        if self._work.is_untouched():
            raise NotFound("Nothing is remembered yet.")
        return await self._changing(work)

    async def _changing(self, work: Callable[[Work], T]) -> T:
        return await asyncio.to_thread(self._change, work)

    def _change(self, work: Callable[[Work], T]) -> T:
        with self._turn, self._work.changing():
            return work(self._work)


def _recorded(
    work: Work, target: Target, planned: Planned, source: Source, key: str, held: str
) -> Applied:
    made = work.record(target, planned.steps, source, held=held)
    if key:
        work.ledger.note_done(key, made)
    held = held if made else ""
    message = "It waits for a person to accept it." if held else planned.message
    return Applied(message=message, changes=made, held=held)


def _forgets(work: Work) -> int:
    return int(work.ledger.fact(FORGETS) or 0)


def _waiting(work: Work, number: int) -> Change:
    change = work.ledger.change(work.scope, number)
    if change is None or not change.open:
        waiting = tuple(
            f"c{each.id}  {preview(each.text)}" for each in work.ledger.open_changes(work.scope)
        )
        raise NotFound(f"Nothing waits under c{number}.", waiting)
    return change


def _drift(work: Work, target: Target, operations: Sequence[Operation]) -> Refused | None:
    """A file that somebody has stuffed with an entry beyond the limit is not rewritten by anything
    but an added entry, or a change of that very one, before a person has seen to it."""
    found, limit = work.found(target), work.person.limits.of(target)
    if found is None or (len(operations) == 1 and operations[0].action == "add"):
        return None
    large = [text for text in split(found.text) if len(text) > limit]
    if not large or all(_is_about(each, large) for each in operations):
        return None
    copy = work.files.keep_copy(target, work.world.clock.now())
    error = (
        f"{work.files.path(target)} has an entry beyond the limit of {limit:,} characters, so "
        f"nothing was changed; a copy is in {copy.name}. Ask the person to shorten it by hand, or "
        "change that entry alone."
    )
    return Refused(kind="drift", error=error)


def _is_about(operation: Operation, texts: Sequence[str]) -> bool:
    old = operation.old_text.strip()
    return bool(old) and any(old in text for text in texts)
