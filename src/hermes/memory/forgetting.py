"""Erases text from all files of a home: journal, memory, recordings, checkpoints and others."""

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

MIN_CHARS = 4
_IN_WAL = (
    "{} may still have it on old pages because another program is reading the file; they are "
    "removed at the next start of Hermes after that program has ended"
)


class ForgetReport(Value):
    """What was erased. `left` lists places that still contain the text or cannot be searched."""

    texts: int
    entries: tuple[int, ...] = ()
    sessions: tuple[str, ...] = ()
    records: int = 0
    files: tuple[str, ...] = ()
    recordings: int = 0
    contents: int = 0
    left: tuple[str, ...] = ()


async def plan_forget(
    memory: MemoryService, reference: str, also: Sequence[str] = ()
) -> ForgetPlan:
    """Plans what to erase: an entry by number or text with all its versions, or any text. Raises
    UsageError for texts that are too short, NotFound for unknown entries."""
    memories = memory.of()
    try:
        found = await memories.plan_forget(entry=await memories.resolve_entry(reference))
    except NotFound as error:
        if error.near or reference.strip().removeprefix("m").isdecimal():
            raise
        found = await memories.plan_forget(text=reference)
    more = [await memories.plan_forget(text=text) for text in also]
    merged = ForgetPlan(
        texts=tuple(dict.fromkeys(text for each in (found, *more) for text in each.texts)),
        changes=tuple(dict.fromkeys(n for each in (found, *more) for n in each.changes)),
        sources=tuple(dict.fromkeys(s for each in (found, *more) for s in each.sources)),
    )
    if not merged.texts:
        raise NotFound("All texts of this entry are already erased.")
    if any(len(text.strip()) < MIN_CHARS for text in merged.texts):
        raise UsageError(
            f"Fewer than {MIN_CHARS} characters match too many places; use a longer text."
        )
    return merged


async def find_traces(
    memory: MemoryService, archive: SessionArchive, plan: ForgetPlan
) -> dict[str, tuple[int, ...]]:
    """Returns the records that contain the texts, by session."""
    if not memory.run.home.journal.exists():
        return {}
    return await find_affected(
        memory.journal, Phrases(plan.texts), near=await _near(memory, archive, plan)
    )


async def forget(
    memory: MemoryService,
    archive: SessionArchive,
    plan: ForgetPlan,
    *,
    by: str = "owner",
    patience_seconds: float = PATIENCE_SECONDS,
) -> ForgetReport:
    """Erases the texts everywhere. Raises SessionBusy and changes nothing when an affected session
    is in use. Safe to repeat after an interruption."""
    phrases = Phrases(plan.texts)
    near = await _near(memory, archive, plan)
    done = Erasure()
    if memory.run.home.journal.exists():
        done = await erase(
            memory.journal, phrases, near=near, by=by, patience_seconds=patience_seconds
        )
    left = [] if done.is_wiped else [_IN_WAL.format(memory.run.home.journal)]
    entries = tuple(sorted({c.entry for c in await memory.of().changes()
                            if c.id in plan.changes}))  # fmt: skip
    left += await _forget_memories(memory, plan, patience_seconds)
    if memory.run.home.index.exists():
        await archive.rebuild_index()
    recordings = await asyncio.to_thread(_drop_recordings, memory.run.home, tuple(done.sessions))
    contents, is_wiped = await asyncio.to_thread(_drop_contents, memory.run.home, phrases)
    left += [] if is_wiped else [describe_leftover(_undo_store(memory.run.home))]
    files, more = await asyncio.to_thread(sweep, memory.run.home.root, phrases.remove_phrases)
    left += more
    left += await memory.forget_outside(phrases.remove_phrases)
    return ForgetReport(
        texts=len(plan.texts),
        entries=entries,
        sessions=tuple(done.sessions),
        records=sum(map(len, done.sessions.values())),
        files=tuple(files),
        recordings=recordings,
        contents=contents,
        left=tuple(left),
    )


async def _forget_memories(
    memory: MemoryService, plan: ForgetPlan, patience_seconds: float
) -> list[str]:
    """Erases the texts from the memories of all people that contain them."""
    memories = memory.of()
    for scope in sorted(await memories.holders(plan) | {OWNER}):
        await memory.of(scope).forget(plan)
    is_wiped = await memories.scrub(patience_seconds=patience_seconds)
    return [] if is_wiped else [describe_leftover(memory.run.home.memories / "ledger.db")]


async def _near(
    memory: MemoryService, archive: SessionArchive, plan: ForgetPlan
) -> dict[str, Mentions]:
    """Returns where the texts were mentioned, including the ancestors of forks."""
    found: dict[str, Mentions] = {}
    for source in plan.sources:
        if not source.session_id:
            continue
        mentions = Mentions(
            turns=frozenset({source.turn_id} - {""}),
            records=frozenset({source.n} - {0}) | await _answered_messages(memory, source),
        )
        for session_id in (source.session_id, *await _ancestors(archive, source.session_id)):
            before = found.get(session_id, Mentions())
            found[session_id] = Mentions(
                turns=before.turns | mentions.turns, records=before.records | mentions.records
            )
    return found


async def _answered_messages(memory: MemoryService, source: ChangeSource) -> frozenset[int]:
    """Returns the messages that the turn answered."""
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
    """Deletes tapes, which store requests as differences and answers in chunks. Without its tape a
    session is replayed from the records only."""
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
