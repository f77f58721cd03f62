"""Erases text from all files of a home: journal, memory, recordings, checkpoints and others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.home import TAPES
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import Steered, TurnStarted
from hermes.core.scrub import PATIENCE_SECONDS, describe_leftover
from hermes.journal.erasure import Erasure, Mentions, erase, find_affected
from hermes.memory.entries import OWNER
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
    home, phrases = memory.run.home, Phrases(plan.texts)
    near = await _near(memory, archive, plan)
    done = Erasure()
    if home.journal.exists():
        done = await erase(
            memory.journal, phrases, near=near, by=by, patience_seconds=patience_seconds
        )
    left = [] if done.is_wiped else [_IN_WAL.format(home.journal)]
    entries = tuple(sorted({c.entry for c in await memory.of().changes()
                            if c.id in plan.changes}))  # fmt: skip
    memories = memory.of()
    for scope in sorted(await memories.holders(plan) | {OWNER}):
        await memory.of(scope).forget(plan)
    if not await memories.scrub(patience_seconds=patience_seconds):
        left.append(describe_leftover(home.memories / "ledger.db"))
    if home.index.exists():
        await archive.rebuild_index()
    recordings = await asyncio.to_thread(_drop_recordings, home, tuple(done.sessions))
    contents, leftovers = await asyncio.to_thread(_drop_contents, home, phrases)
    left += leftovers
    files, leftovers = await asyncio.to_thread(sweep, home.root, phrases.remove_phrases)
    left += leftovers
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


async def _near(
    memory: MemoryService, archive: SessionArchive, plan: ForgetPlan
) -> dict[str, Mentions]:
    """Returns where the texts were mentioned: the messages and their turns, also in the ancestors
    of forks."""
    found: dict[str, Mentions] = {}
    for source in plan.sources:
        if not source.session_id:
            continue
        turns, records = {source.turn_id} - {""}, {source.n} - {0}
        with suppress(NotFound):
            for record in await memory.journal.read(source.session_id):
                event = record.event
                if record.turn_id == source.turn_id and isinstance(event, TurnStarted | Steered):
                    records.update(event.takes)
        ancestors: tuple[str, ...] = ()
        with suppress(NotFound):
            ancestors = (await archive.lineage(source.session_id)).ancestors
        for session_id in (source.session_id, *ancestors):
            before = found.get(session_id, Mentions())
            found[session_id] = Mentions(
                turns=before.turns | turns, records=before.records | records
            )
    return found


def _drop_recordings(home: Home, sessions: Sequence[str]) -> int:
    """Deletes tapes, which store requests as differences and answers in chunks. Without its tape a
    session is replayed from the records only."""
    tapes = [tape for each in sessions for tape in (home.sessions / each / TAPES).glob("*")]
    for tape in tapes:
        tape.unlink()
    return len(tapes)


def _drop_contents(home: Home, phrases: Phrases) -> tuple[int, list[str]]:
    """Erases file contents from the checkpoints; returns their number, and leftovers."""
    from hermes.undo.retention import erase_contents
    from hermes.undo.store import CheckpointStore

    folder = home.root / "checkpoints"
    with closing(CheckpointStore(folder)) as store:
        count, is_wiped = erase_contents(store, phrases.remove_phrases)
    return count, [] if is_wiped else [describe_leftover(folder)]
