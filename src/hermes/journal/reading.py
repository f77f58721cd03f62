"""Reads the records of one session, or the events of all sessions in the order of writing."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hermes.codec.json import DecodeError
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.core.events import Record
from hermes.journal.body_templates import event_of, is_newer, readable_event
from hermes.journal.rows import MAX_N, UnreadableRow, read_rows
from hermes.journal.transaction import Transaction

log = logging.getLogger(__name__)


class HistorySegment(NamedTuple):
    """The part of a session's history that one session stores: its records up to `upto`."""

    session: int
    session_id: str
    upto: int


class DamagedRecord(NamedTuple):
    session: int
    session_id: str
    record: UnreadableRow


def history_segments(db: sqlite3.Connection, session_id: str) -> list[HistorySegment]:
    """The oldest ancestor first, the session itself last; NotFound."""
    found: list[HistorySegment] = []
    query = "SELECT session, id, parent, parent_n FROM sessions WHERE"
    row = db.execute(f"{query} id = ?", (session_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no session {session_id}.")
    upto = MAX_N
    while row and upto:
        session, id, parent, parent_n = row
        found.append(HistorySegment(session, id, upto))
        upto = min(upto, parent_n)
        row = db.execute(f"{query} session = ?", (parent,)).fetchone()
    return found[::-1]


def read_session(
    db: sqlite3.Connection, session_id: str, after: int = 0
) -> tuple[list[Record], list[DamagedRecord]]:
    """The records, each with the id of the session that stores it, and the newly found damaged
    ones. Records of a newer Hermes are skipped."""
    records: list[Record] = []
    lost: list[DamagedRecord] = []
    for session, id, upto in history_segments(db, session_id):
        whole, damaged = read_rows(db, session, after, upto)
        found = db.execute("SELECT event FROM quarantine WHERE session = ?", (session,))
        known = {event for (event,) in found}
        for row in whole:
            if row.id in known or is_newer(row.kind, row.version):
                continue
            try:
                event = event_of(row.kind, row.version, row.body)
            except DecodeError as error:
                damaged.append(UnreadableRow(row.id, row.n, f"it cannot be decoded ({error})"))
            else:
                record = Record(session_id=id, n=row.n, turn_id=row.turn_id, at=row.at, event=event)
                records.append(record)
        lost += [DamagedRecord(session, id, each) for each in damaged if each.id not in known]
    return records, lost


def quarantine(tx: Transaction, lost: Iterable[DamagedRecord], now: float) -> None:
    for session, session_id, record in lost:
        found = tx.db.execute(
            "INSERT INTO quarantine VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (record.id, session, record.n, record.why, now),
        )
        if found.rowcount:
            log.warning(
                "a damaged record was quarantined",
                extra={"session": session_id, "n": record.n, "why": record.why},
            )


_SELECT = (
    "SELECT e.id, s.id, e.n, e.turn_id, e.kind, e.version, CAST(e.body AS BLOB), e.at"
    " FROM events AS e JOIN sessions AS s USING (session) WHERE e.id = ?"
)


class FeedItem(Value):
    """A record and its cursor. Cursors grow over all sessions of a home."""

    cursor: int
    record: Record


def newest_cursor(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(id), 0) FROM log").fetchone()[0])


def events_after(
    db: sqlite3.Connection,
    cursor: int,
    kinds: Sequence[str],
    *,
    session_id: str = "",
    limit: int = 20,
) -> list[FeedItem]:
    """The next events of these kinds, oldest first."""
    where = "id > ?"
    values: list[object] = [cursor]
    if session_id:
        where += " AND session = (SELECT session FROM sessions WHERE id = ?)"
        values.append(session_id)
    return _find_items(db, where, values, kinds, f"id LIMIT {limit}")


def events_since(
    db: sqlite3.Connection, at: float, kinds: Sequence[str], *, limit: int = 1_000
) -> list[FeedItem]:
    """The newest events of these kinds since `at`, oldest first."""
    return _find_items(db, "at >= ?", [at], kinds, f"id DESC LIMIT {limit}")


def _find_items(
    db: sqlite3.Connection, where: str, values: list[object], kinds: Sequence[str], order: str
) -> list[FeedItem]:
    """Oldest first."""
    shapes = f"SELECT shape FROM shapes WHERE kind IN ({','.join('?' * len(kinds))})"
    ids = db.execute(
        f"SELECT id FROM log WHERE {where} AND shape IN ({shapes}) ORDER BY {order}",
        (*values, *kinds),
    ).fetchall()
    found: list[FeedItem] = []
    for id in sorted(ids):
        row = db.execute(_SELECT, id).fetchone()
        if row is None:
            continue
        cursor, session_id, n, turn_id, kind, version, body, at = row
        event = readable_event(kind, version, body)
        if event is None:
            # Damaged records are reported when their session is read.
            continue
        record = Record(session_id=session_id, n=n, turn_id=turn_id, at=at, event=event)
        found.append(FeedItem(cursor=cursor, record=record))
    return found
