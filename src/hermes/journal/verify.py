"""Verifies the journal: the hash chain of every session, and the file itself."""

from __future__ import annotations

import sqlite3
from functools import partial

from hermes.codec.json import DecodeError
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.journal.body_templates import event_of, is_newer
from hermes.journal.connections import is_damage
from hermes.journal.high_water import HighWaterMark
from hermes.journal.journal import SqliteJournal
from hermes.journal.reading import (
    DamagedRecord,
    LogRow,
    UnreadableRow,
    chain_hash,
    chain_seed,
    last_n,
    read_rows,
)
from hermes.journal.transaction import Transaction


class VerifyProblem(Value):
    """A record that differs from what was written. n = 0 refers to the whole session, an empty
    session id to the file."""

    session_id: str
    n: int
    why: str


async def verify(
    journal: SqliteJournal, session_id: str | None = None
) -> tuple[VerifyProblem, ...]:
    """Verify one session, or all sessions and the file. Records that fail are quarantined;
    quarantined records that are valid again are restored."""
    query = (
        "SELECT session, id, parent_n FROM sessions WHERE ?1 IS NULL OR id = ?1 ORDER BY session"
    )
    sessions = await journal.reading(lambda db: db.execute(query, (session_id,)).fetchall())
    if session_id is not None and not sessions:
        raise NotFound(f"There is no session {session_id}.")
    problems: list[VerifyProblem] = []
    for session, id, parent_n in sessions:
        # One session at a time: a long read would keep the write-ahead log from shrinking.
        lost = await journal.reading(partial(_check, session, id, parent_n))
        problems += [VerifyProblem(session_id=id, n=record.n, why=record.why) for record in lost]
        await _update_quarantine(journal, session, id, lost)
    if session_id is None:
        problems += [
            VerifyProblem(session_id="", n=0, why=why)
            for why in await journal.reading(_check_file)
            if why != "ok"
        ]
        losses = await journal.reading(HighWaterMark(journal.path).losses)
        problems += [VerifyProblem(session_id="", n=0, why=why) for why in losses]
    return tuple(problems)


async def repair_journal(journal: SqliteJournal) -> tuple[VerifyProblem, ...]:
    """Repair the file if it is damaged, and return what `verify` still finds. The damaged file is
    kept."""
    await journal.writer.repair(now=True)
    return await verify(journal)


def _check(
    session: int, session_id: str, parent_n: int, db: sqlite3.Connection
) -> list[UnreadableRow]:
    """Return the records that are damaged, changed, repeated or missing, in order; missing ones
    have id 0."""
    rows = read_rows(db, session)
    damaged = {record.n: record for record in rows.damaged}
    # After a bad record, the next may be chained to the expected hash or to the stored one, because
    # either the record or its hash was changed. None means that the hash is unknown.
    previous: tuple[bytes, ...] | None = (chain_seed(session_id),)
    expected = parent_n + 1
    written: dict[tuple[object, ...], int] = {}
    for row in rows.whole:
        if row.n != expected:
            for n in range(expected, row.n):
                damaged.setdefault(n, UnreadableRow(0, n, "it is missing"))
            previous = None
        previous, why = _check_row(row, previous)
        if not why and (first := written.setdefault(_identity(row), row.n)) != row.n:
            why = f"it repeats record {first}"
        if why:
            damaged[row.n] = UnreadableRow(row.id, row.n, why)
        expected = row.n + 1
    # The session list and the quarantine also know the newest record.
    row = db.execute("SELECT last_n FROM summaries WHERE session = ?", (session,)).fetchone()
    for n in range(expected, max(row[0] if row else 0, last_n(db, session)) + 1):
        damaged.setdefault(n, UnreadableRow(0, n, "it is missing"))
    return [damaged[n] for n in sorted(damaged)]


def _check_row(row: LogRow, previous: tuple[bytes, ...] | None) -> tuple[tuple[bytes, ...], str]:
    """Return the hashes that the next record may be chained to, and what is wrong with this one."""
    if not is_newer(row.kind, row.version):
        try:
            event_of(row.kind, row.version, row.body)
        except DecodeError as error:
            return (row.hash,), f"it cannot be decoded ({error})"
    if previous is None:
        return (row.hash,), ""
    links = tuple(
        chain_hash(hash, row.n, row.turn_id, row.kind, row.version, row.at, row.body)
        for hash in previous
    )
    if row.hash in links:
        return (row.hash,), ""
    return (row.hash, *links), "it was changed after it was written"


def _identity(row: LogRow) -> tuple[object, ...]:
    """Return a key that two records share only if one event was written twice: the same turn, time
    and body. Old model calls have no ids, and one call may ask for an effect twice at once: these
    count as different. So do records outside turns, which may be imported with coarse times, unless
    it is a new message with an exact time."""
    has_no_id = row.kind == "model_called" and b'"call":' not in row.body
    is_new = row.kind == "message_received" and b'"past":true' not in row.body
    is_certain = bool(row.turn_id) or (is_new and row.at % 1 != 0)
    if not is_certain or has_no_id or row.kind == "effect_decided":
        return (row.n,)
    return (row.turn_id, row.kind, row.at, row.body)


def _check_file(db: sqlite3.Connection) -> list[str]:
    """Return the result of SQLite's own check: "ok", or the problems."""
    try:
        return [str(text) for (text,) in db.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return [str(error)]


async def _update_quarantine(
    journal: SqliteJournal, session: int, session_id: str, found: list[UnreadableRow]
) -> None:
    """Update the quarantine of one session."""
    bad = {record.id for record in found if record.id}
    query = "SELECT event FROM quarantine WHERE session = ?"
    known = await journal.reading(lambda db: {event for (event,) in db.execute(query, (session,))})
    if healed := [(id,) for id in known - bad]:

        def forget(tx: Transaction) -> None:
            tx.db.executemany("DELETE FROM quarantine WHERE event = ?", healed)

        await journal.writing(forget)
    new = bad - known
    lost = [DamagedRecord(session, session_id, record) for record in found if record.id in new]
    await journal.set_aside(lost)
