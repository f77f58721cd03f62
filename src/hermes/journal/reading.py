"""Reads the records of one session, or the events of all sessions in the order of writing."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hermes.codec.json import DecodeError
from hermes.codec.values import Value
from hermes.core.errors import JournalError, NotFound
from hermes.core.events import Record
from hermes.journal.body_templates import event_of, is_newer
from hermes.journal.rows import MAX_N, LogRow, LogRows, UnreadableRow, read_rows
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
    while row is not None:
        session, id, parent, parent_n = row
        found.append(HistorySegment(session, id, upto))
        upto = min(upto, parent_n)
        row = upto and db.execute(f"{query} session = ?", (parent,)).fetchone()
        row = row or None
    return found[::-1]


def read_session(
    db: sqlite3.Connection, session_id: str, after: int = 0, upto: int = MAX_N
) -> tuple[list[Record], list[DamagedRecord]]:
    """The records, each with the id of the session that stores it, and the newly found damaged
    ones. Records of a newer Hermes are skipped."""
    records: list[Record] = []
    lost: list[DamagedRecord] = []
    for segment in history_segments(db, session_id):
        rows = read_rows(db, segment.session, after, min(segment.upto, upto))
        known = _quarantined_ids(db, segment.session)
        damaged = _decode(rows, segment.session_id, known, records)
        lost += [
            DamagedRecord(segment.session, segment.session_id, record)
            for record in damaged
            if record.id not in known
        ]
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


def _decode(
    rows: LogRows, session_id: str, known: frozenset[int], records: list[Record]
) -> list[UnreadableRow]:
    damaged = list(rows.damaged)
    for row in rows.whole:
        if row.id in known or is_newer(row.kind, row.version):
            continue
        try:
            records.append(_record(session_id, row))
        except DecodeError as error:
            damaged.append(UnreadableRow(row.id, row.n, f"it cannot be decoded ({error})"))
    return damaged


def _record(session_id: str, row: LogRow) -> Record:
    event = event_of(row.kind, row.version, row.body)
    return Record(session_id=session_id, n=row.n, turn_id=row.turn_id, at=row.at, event=event)


def _quarantined_ids(db: sqlite3.Connection, session: int) -> frozenset[int]:
    found = db.execute("SELECT event FROM quarantine WHERE session = ?", (session,))
    return frozenset(event for (event,) in found)


_SHAPES = "SELECT shape FROM shapes WHERE kind IN ({marks})"
_SELECT = (
    "SELECT e.id, s.id, e.n, e.turn_id, e.kind, e.version, CAST(e.body AS BLOB), e.at"
    " FROM events AS e JOIN sessions AS s USING (session)"
)
_FORWARD = "SELECT id FROM log WHERE id > ? AND shape IN ({shapes}) {where} ORDER BY id LIMIT ?"
_BACK = "SELECT id FROM log WHERE at >= ? AND shape IN ({shapes}) ORDER BY id DESC LIMIT ?"


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
    shapes = _template_ids(db, kinds)
    where, values = "", [cursor]
    if session_id:
        where = "AND session = (SELECT session FROM sessions WHERE id = ?)"
    query = _FORWARD.format(shapes=",".join(map(str, shapes)), where=where)
    given = (*values, *((session_id,) if session_id else ()), limit)
    return _read_items(db, [row[0] for row in db.execute(query, given)])


def events_since(
    db: sqlite3.Connection, at: float, kinds: Sequence[str], *, limit: int = 1_000
) -> list[FeedItem]:
    """The newest events of these kinds since `at`, oldest first."""
    shapes = ",".join(map(str, _template_ids(db, kinds)))
    found = db.execute(_BACK.format(shapes=shapes), (at, limit))
    return _read_items(db, sorted(row[0] for row in found))


def _template_ids(db: sqlite3.Connection, kinds: Sequence[str]) -> list[int]:
    marks = ",".join("?" * len(kinds))
    return [row[0] for row in db.execute(_SHAPES.format(marks=marks), tuple(kinds))]


def _read_items(db: sqlite3.Connection, ids: Sequence[int]) -> list[FeedItem]:
    found: list[FeedItem] = []
    for id in ids:
        row = db.execute(f"{_SELECT} WHERE e.id = ?", (id,)).fetchone()
        if row is None:
            continue
        cursor, session_id, n, turn_id, kind, version, body, at = row
        try:
            event = event_of(kind, version, body)
        except (DecodeError, JournalError):
            # Damaged records are reported when their session is read.
            continue
        record = Record(session_id=session_id, n=n, turn_id=turn_id, at=at, event=event)
        found.append(FeedItem(cursor=cursor, record=record))
    return found
