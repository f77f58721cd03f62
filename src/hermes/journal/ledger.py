"""The tables derived from events: written with every commit, rebuilt when they are gone."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator

from hermes.codec.json import DecodeError
from hermes.core.events import DurableEvent, MessageReceived
from hermes.journal import schema
from hermes.journal.rows import last_n, read_rows
from hermes.journal.summaries import Spent, Summary
from hermes.journal.versions import event_of, is_newer

log = logging.getLogger(__name__)

_SAVE = f"INSERT OR REPLACE INTO summaries VALUES ({','.join('?' * len(Summary.COLUMNS))})"
_CHARGE = """
INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(session, day, model, provider, cause) DO UPDATE SET
    calls = calls + excluded.calls, replies = replies + excluded.replies,
    input = input + excluded.input, output = output + excluded.output,
    cache_read = cache_read + excluded.cache_read,
    cache_write = cache_write + excluded.cache_write,
    reasoning = reasoning + excluded.reasoning, cost = cost + excluded.cost,
    unpriced = unpriced + excluded.unpriced
"""
_KEY = "INSERT OR IGNORE INTO message_keys VALUES (?, ?, ?)"


def save(db: sqlite3.Connection, summaries: Iterable[Summary]) -> None:
    db.executemany(_SAVE, [summary.row() for summary in summaries])


def load(db: sqlite3.Connection, session: int) -> Summary | None:
    row = db.execute("SELECT * FROM summaries WHERE session = ?", (session,)).fetchone()
    return Summary.of_row(row) if row else None


def charge(db: sqlite3.Connection, spent: Iterable[tuple[int, Spent]]) -> None:
    db.executemany(_CHARGE, [_charge_row(session, item) for session, item in spent])


def _charge_row(session: int, spent: Spent) -> tuple[object, ...]:
    usage = spent.usage
    unpriced = spent.replies if usage.cost is None else 0
    return (
        *(session, spent.day, spent.model, spent.provider, spent.cause),
        *(spent.calls, spent.replies, usage.input, usage.output, usage.cache_read),
        *(usage.cache_write, usage.reasoning, usage.cost or 0.0, unpriced),
    )


def remember_key(db: sqlite3.Connection, session: int, key: str, n: int) -> bool:
    """False when the session, or a parent in the records they share, has the key already."""
    if _is_inherited(db, session, key):
        return False
    return db.execute(_KEY, (session, key, n)).rowcount == 1


def _is_inherited(db: sqlite3.Connection, session: int, key: str) -> bool:
    query = (
        "WITH RECURSIVE above(session, shared) AS ("
        " SELECT parent, parent_n FROM sessions WHERE session = ? AND parent_n > 0 UNION ALL"
        " SELECT s.parent, min(s.parent_n, shared) FROM above JOIN sessions AS s USING (session)"
        " WHERE s.parent_n > 0)"
        "SELECT 1 FROM above JOIN message_keys AS k USING (session)"
        " WHERE k.key = ? AND k.n <= shared"
    )
    return db.execute(query, (session, key)).fetchone() is not None


def rebuild(db: sqlite3.Connection) -> None:
    """Make all derived tables anew, inside the caller's transaction."""
    log.info("rebuilding the derived tables of the journal")
    schema.create_projections(db)
    for session, parent_n in db.execute("SELECT session, parent_n FROM sessions").fetchall():
        rebuild_session(db, session, parent_n)


def rebuild_session(db: sqlite3.Connection, session: int, parent_n: int) -> Summary:
    for table in schema.DERIVED_TABLES:
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    summary = Summary(session, parent_n)
    spent: list[tuple[int, Spent]] = []
    for n, turn_id, at, event in _readable(db, session):
        item = summary.add(event, turn_id=turn_id, at=at)
        if item is not None:
            spent.append((session, item))
        if isinstance(event, MessageReceived) and event.key:
            db.execute(_KEY, (session, event.key, n))
    summary.last_n = max(parent_n, last_n(db, session))
    save(db, [summary])
    charge(db, spent)
    return summary


def _readable(
    db: sqlite3.Connection, session: int
) -> Iterator[tuple[int, str, float, DurableEvent]]:
    for row in read_rows(db, session).whole:
        if is_newer(row.kind, row.version):
            continue
        try:
            yield row.n, row.turn_id, row.at, event_of(row.kind, row.version, row.body)
        except DecodeError:
            continue
