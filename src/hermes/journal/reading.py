"""Reads a session: shared records first, then its own, without damaged ones."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from hermes.codec.json import DecodeError
from hermes.core.errors import NotFound
from hermes.core.events import Record
from hermes.journal.rows import MAX_N, LogRow, LogRows, UnreadableRow, read_rows
from hermes.journal.transaction import Transaction
from hermes.journal.versions import event_of, is_newer

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
