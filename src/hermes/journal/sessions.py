"""Finds sessions by id or title, renames, archives and forks them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hermes.codec.values import Value, replace
from hermes.core.commands import Archive, Command, Retitle
from hermes.core.errors import NotFound, SessionBusy, UsageError
from hermes.core.events import (
    Archived,
    Compacted,
    DurableEvent,
    ModelSwitched,
    Record,
    SessionEnded,
    SessionOpened,
    TitleChanged,
)
from hermes.core.transcript import fold
from hermes.journal import titles
from hermes.journal.journal import SqliteJournal, encode_events
from hermes.journal.listing import SessionFilter, info_of, select
from hermes.journal.reading import history_segments, read_session
from hermes.journal.transaction import Transaction

NEAR = 5
COMPRESSION = "compression"
"""Why a session ended whose conversation continues in a child."""
# The child is the first fork of such a session at its end.
_CONTINUATION = (
    "SELECT child.id FROM sessions AS own JOIN summaries ON summaries.session = own.session"
    " JOIN sessions AS child ON child.parent = own.session"
    " WHERE own.id = ?1 AND end_reason = ?2"
    " AND child.parent_n = (SELECT max(n) FROM log WHERE log.session = own.session)"
    " ORDER BY child.session LIMIT 1"
)


class Lineage(Value):
    """The ancestors of a session (oldest first) and its forks."""

    ancestors: tuple[str, ...]
    children: tuple[str, ...]


async def find(journal: SqliteJournal, text: str) -> str:
    """Return the id for an id, a prefix of one, or a title. A title also means the newest of "title
    #2", "title #3"… NotFound lists similar ones."""
    return await journal.reading(lambda db: _find(db, text.strip()))


async def newest(journal: SqliteJournal, source: str | None = None) -> str | None:
    """Return the id of the most recently used session that is not archived."""
    wanted = SessionFilter(source=source)
    found = await journal.reading(lambda db: select(db, wanted, limit=1))
    return found[0].id if found else None


async def retitle(journal: SqliteJournal, session_id: str, title: str) -> str:
    """Set the title and return it; empty removes it. If another process has the session open, the
    command goes to its inbox."""
    clean = titles.clean_title(title)

    def check(db: sqlite3.Connection) -> None:
        info = info_of(db, session_id)
        if info is None:
            raise NotFound(f"There is no session {session_id}.")
        if clean and clean != info.title:
            titles.check_free(db, clean)

    await journal.reading(check)
    await _write_or_post(journal, session_id, TitleChanged(title=clean), Retitle(title=clean))
    return clean


async def set_archived(journal: SqliteJournal, session_id: str, *, away: bool) -> None:
    """Hide a session from listings, or show it again; raise NotFound. If another process has the
    session open, the command goes to its inbox."""
    info = await journal.reading(lambda db: info_of(db, session_id))
    if info is None:
        raise NotFound(f"There is no session {session_id}.")
    if info.archived is not away:
        await _write_or_post(journal, session_id, Archived(away=away), Archive(away=away))


async def _write_or_post(
    journal: SqliteJournal, session_id: str, event: DurableEvent, command: Command
) -> None:
    """Write the event, or leave the command for the owner of the session."""
    try:
        lease = await journal.acquire(session_id)
    except SessionBusy:
        await journal.post(session_id, command)
        return
    try:
        await journal.append(lease, [event])
    finally:
        await journal.release(lease)


async def free_title(journal: SqliteJournal, title: str) -> str:
    """Return the title itself, or "title #N" with the next free number."""
    clean = titles.clean_title(title)
    return await journal.reading(lambda db: titles.next_title(db, clean))


async def fork(
    journal: SqliteJournal, session_id: str, *, at: int | None = None, title: str = ""
) -> str:
    """Create a session that shares the records up to number `at` (default: the last), and return
    its id. It has no owner yet. Its title is the given one, or the parent's with the next
    number."""
    records, _ = await journal.reading(lambda db: read_session(db, session_id))
    last = records[-1].n if records else 0
    cut = last if at is None else at
    if not 1 <= cut <= last:
        raise UsageError(f"Session {session_id} has records 1 to {last}; {cut} is not one of them.")
    opening = _fork_opening([record for record in records if record.n <= cut], session_id, cut)
    own_title = titles.clean_title(title)
    new_id, now = journal.world.new_session_id(), journal.world.clock.now()

    def work(tx: Transaction) -> str:
        events: list[DurableEvent] = [opening]
        parent = info_of(tx.db, session_id)
        inherited = titles.next_title(tx.db, parent.title) if parent and parent.title else ""
        if new_title := own_title or inherited:
            events.append(TitleChanged(title=new_title))
        items = encode_events(events)
        tx.check_titles(0, items)
        session = tx.create(new_id, parent=session_id, parent_n=cut)
        tx.write(session, items, turn_id="", at=now)
        return new_id

    return await journal.writing(work)


async def find_continuation(journal: SqliteJournal, session_id: str) -> str:
    """Return the newest session that continues this one after compactions, or the id itself."""

    def work(db: sqlite3.Connection) -> str:
        found = session_id
        while below := db.execute(_CONTINUATION, (found, COMPRESSION)).fetchone():
            found = below[0]
        return found

    return await journal.reading(work)


async def continue_compacted(journal: SqliteJournal, session_id: str) -> str:
    """Return the session in which a conversation continues. If it was compacted in its newest
    session, end that session and continue in a child. Unfinished work is finished first, where it
    began. Raise SessionBusy when another process has the session open."""
    session_id = await find_continuation(journal, session_id)
    lease = await journal.acquire(session_id)
    try:
        records, _ = await journal.reading(lambda db: read_session(db, session_id))
        transcript = fold(records)
        own = transcript.opened.parent_n if transcript.opened else 0
        if transcript.turn_id or transcript.waiting or not _was_compacted(records, own):
            return session_id
        if records[-1].event != SessionEnded(reason=COMPRESSION):
            await journal.append(lease, [SessionEnded(reason=COMPRESSION)])
        return await fork(journal, session_id)
    finally:
        await journal.release(lease)


def _was_compacted(records: Sequence[Record], after: int) -> bool:
    return any(isinstance(each.event, Compacted) for each in records if each.n > after)


async def lineage(journal: SqliteJournal, session_id: str) -> Lineage:
    def work(db: sqlite3.Connection) -> Lineage:
        session = history_segments(db, session_id)[-1].session
        above = (
            "WITH RECURSIVE above(session, depth) AS (SELECT parent, 1 FROM sessions"
            " WHERE session = ?1 UNION ALL SELECT parent, depth + 1 FROM above"
            " JOIN sessions USING (session))"
            " SELECT id FROM above JOIN sessions USING (session) ORDER BY depth DESC"
        )
        below = "SELECT id FROM sessions WHERE parent = ?1 ORDER BY session"
        return Lineage(
            ancestors=tuple(id for (id,) in db.execute(above, (session,))),
            children=tuple(id for (id,) in db.execute(below, (session,))),
        )

    return await journal.reading(work)


def _fork_opening(records: list[Record], parent: str, parent_n: int) -> SessionOpened:
    """Return the opening event of a fork: the state of the parent at that point."""
    opening = None
    for event in (record.event for record in records):
        if isinstance(event, SessionOpened):
            opening = event
        elif isinstance(event, ModelSwitched) and opening:
            opening = replace(opening, model=event.model, provider=event.provider)
    if opening is None:
        raise UsageError(f"Session {parent} cannot be forked, because its first record is lost.")
    return replace(opening, parent=parent, parent_n=parent_n)


def _find(db: sqlite3.Connection, text: str) -> str:
    if not text:
        raise NotFound("Name the session by its id, the beginning of its id, or its title.")
    if _ids(db, "id = ?1", text):
        return text
    by_id = _ids(db, "id >= ?1 AND id < ?1 || char(1114111) ORDER BY session DESC", text)
    if len(by_id) == 1:
        return by_id[0]
    if by_title := titles.find_numbered(db, text):
        return by_title[max(by_title)]
    if by_id:
        raise NotFound(f"Several sessions begin with “{text}”; type more of the id.", tuple(by_id))
    # Sessions whose id or title contains the text, or whose title shares a word with it.
    where = "instr(lower(id), ?1) OR instr(lower(title), ?1) ORDER BY last_at DESC"
    words = [word for word in text.lower().split() if len(word) > 2][:8]
    similar = (_ids(db, where, part) for part in (text.lower(), *words))
    near = tuple(next(filter(None, similar), ()))
    hint = f" Near: {', '.join(near)}." if near else ""
    raise NotFound(f"There is no session “{text}”.{hint}", near)


def _ids(db: sqlite3.Connection, where: str, text: str) -> list[str]:
    query = f"SELECT id FROM sessions JOIN summaries USING (session) WHERE {where} LIMIT {NEAR}"
    return [id for (id,) in db.execute(query, (text,))]
