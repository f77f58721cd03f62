"""Reads the events of all sessions in the order in which they were written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hermes.codec.json import DecodeError
from hermes.codec.values import Value
from hermes.core.errors import JournalError
from hermes.core.events import Record
from hermes.journal.versions import event_of

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
