"""Forgetting for good: what was said and remembered leaves every file of a home."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.home import TAPES
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import Steered, TurnStarted
from hermes.core.scrub import PATIENCE_SECONDS, describe_leftover
from hermes.journal.erasure import Erasure, Mentions, erase, find_affected
from hermes.memory.entries import OWNER, ChangeSource
from hermes.memory.memories import ForgetPlan
from hermes.memory.phrases import Phrases
from hermes.memory.sweep import sweep

if TYPE_CHECKING:
    from hermes.config.home import Home
    from hermes.journal.archive import SessionArchive
    from hermes.memory.service import MemoryService

LEAST_CHARS = 4
_IN_THE_LOG = (
    "{} may still have it on old pages, because another program reads there; they go at the next "
    "start of Hermes after that has ended"
)


class ForgetReport(Value):
    """What was done. `left` are places that still have it, or cannot be looked into."""

    texts: int
    entries: tuple[int, ...] = ()
    sessions: tuple[str, ...] = ()
    records: int = 0
    files: tuple[str, ...] = ()
    recordings: int = 0
    contents: int = 0
    left: tuple[str, ...] = ()


async def plan_forget(memory: MemoryService, named: str, also: Sequence[str] = ()) -> ForgetPlan:
    """What somebody wants to be forgotten: an entry by number or text, with all that it ever said,
    or any words; UsageError when they are too few, NotFound when they stand nowhere."""
    memories = memory.of()
    try:
        found = await memories.plan_forget(entry=await memories.resolve_entry(named))
    except NotFound as error:
        if error.near or named.strip().removeprefix("m").isdecimal():
            raise
        found = await memories.plan_forget(text=named)
    more = [await memories.plan_forget(text=text) for text in also]
    whole = ForgetPlan(
        texts=tuple(dict.fromkeys(text for each in (found, *more) for text in each.texts)),
        changes=tuple(dict.fromkeys(n for each in (found, *more) for n in each.changes)),
        sources=tuple(dict.fromkeys(s for each in (found, *more) for s in each.sources)),
    )
    if not whole.texts:
        raise NotFound("All that this entry said is forgotten already.")
    if any(len(text.strip()) < LEAST_CHARS for text in whole.texts):
        raise UsageError(f"Fewer than {LEAST_CHARS} characters stand in too many places; say more.")
    return whole


async def find_traces(
    memory: MemoryService, archive: SessionArchive, what: ForgetPlan
) -> dict[str, tuple[int, ...]]:
    """The records in which it stands, by session."""
    if not memory.run.home.journal.exists():
        return {}
    return await find_affected(
        memory.journal, Phrases(what.texts), near=await _near(memory, archive, what)
    )


async def forget(
    memory: MemoryService,
    archive: SessionArchive,
    what: ForgetPlan,
    *,
    by: str = "owner",
    patience_seconds: float = PATIENCE_SECONDS,
) -> ForgetReport:
    """Everywhere or, when a session that holds it is in use, nowhere: SessionBusy. May be done
    again when it was cut short."""
    phrases = Phrases(what.texts)
    near = await _near(memory, archive, what)
    done = Erasure()
    if memory.run.home.journal.exists():
        done = await erase(
            memory.journal, phrases, near=near, by=by, patience_seconds=patience_seconds
        )
    left = [] if done.is_wiped else [_IN_THE_LOG.format(memory.run.home.journal)]
    entries = tuple(sorted({c.entry for c in await memory.of().changes()
                            if c.id in what.changes}))  # fmt: skip
    left += await _forget_memories(memory, what, patience_seconds)
    if memory.run.home.index.exists():
        await archive.rebuild_index()
    recordings = await asyncio.to_thread(_drop_recordings, memory.run.home, tuple(done.sessions))
    contents, is_wiped = await asyncio.to_thread(_drop_contents, memory.run.home, phrases)
    left += [] if is_wiped else [describe_leftover(_undo_store(memory.run.home))]
    files, more = await asyncio.to_thread(sweep, memory.run.home.root, phrases.remove_phrases)
    left += more
    left += await memory.forget_outside(phrases.remove_phrases)
    return ForgetReport(
        texts=len(what.texts),
        entries=entries,
        sessions=tuple(done.sessions),
        records=sum(map(len, done.sessions.values())),
        files=tuple(files),
        recordings=recordings,
        contents=contents,
        left=tuple(left),
    )


async def _forget_memories(
    memory: MemoryService, what: ForgetPlan, patience_seconds: float
) -> list[str]:
    """In the memory of everybody who was told the same."""
    memories = memory.of()
    for scope in sorted(await memories.holders(what) | {OWNER}):
        await memory.of(scope).forget(what)
    is_wiped = await memories.scrub(patience_seconds=patience_seconds)
    return [] if is_wiped else [describe_leftover(memory.run.home.memories / "ledger.db")]


async def _near(
    memory: MemoryService, archive: SessionArchive, what: ForgetPlan
) -> dict[str, Mentions]:
    """Where it was said, also in the sessions whose records a fork shares."""
    found: dict[str, Mentions] = {}
    for source in what.sources:
        if not source.session_id:
            continue
        here = Mentions(
            turns=frozenset({source.turn_id} - {""}),
            records=frozenset({source.n} - {0}) | await _taken_records(memory, source),
        )
        for session_id in (source.session_id, *await _ancestors(archive, source.session_id)):
            before = found.get(session_id, Mentions())
            found[session_id] = Mentions(
                turns=before.turns | here.turns, records=before.records | here.records
            )
    return found


async def _taken_records(memory: MemoryService, source: ChangeSource) -> frozenset[int]:
    """The messages that the turn has answered."""
    try:
        records = await memory.journal.read(source.session_id)
    except NotFound:
        return frozenset()
    return frozenset(
        n
        for record in records
        if record.turn_id == source.turn_id and isinstance(record.event, TurnStarted | Steered)
        for n in record.event.takes
    )


async def _ancestors(archive: SessionArchive, session_id: str) -> tuple[str, ...]:
    try:
        return (await archive.lineage(session_id)).ancestors
    except NotFound:
        return ()


def _drop_recordings(home: Home, sessions: Sequence[str]) -> int:
    """Tapes hold requests as differences and answers in pieces; a session without them stays as it
    is, it only cannot be replayed."""
    count = 0
    for session_id in sessions:
        for tape in (home.sessions / session_id / TAPES).glob("*"):
            tape.unlink()
            count += 1
    return count


def _drop_contents(home: Home, phrases: Phrases) -> tuple[int, bool]:
    from hermes.undo.retention import erase_contents as forget_contents
    from hermes.undo.store import CheckpointStore

    store = CheckpointStore(_undo_store(home))
    try:
        return forget_contents(store, phrases.remove_phrases)
    finally:
        store.close()


def _undo_store(home: Home) -> Path:
    return home.root / "checkpoints"
