"""Reads stored records: of one session with its ancestors, also from a damaged file, or of all
sessions in the order of writing. Computes the hash chain."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from hermes.codec.json import DecodeError, encode
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.core.events import MessageReceived, Record
from hermes.journal.body_templates import event_of, is_newer, readable_event
from hermes.journal.connections import (
    first_readable,
    ignore_damage,
    is_damage,
    read_around_damage,
)
from hermes.journal.summaries import preview_of

log = logging.getLogger(__name__)

HASH_BYTES = 16


def chain_seed(session_id: str) -> bytes:
    """Return the hash that the first record of a session is chained to."""
    return blake2b(session_id.encode(), digest_size=HASH_BYTES).digest()


def chain_hash(
    previous: bytes, n: int, turn_id: str, kind: str, version: int, at: float, body: bytes
) -> bytes:
    # The fields are framed as a JSON array, so that no two different records have the same bytes.
    frame = encode((n, turn_id, kind, version, at))
    return blake2b(previous + frame + body, digest_size=HASH_BYTES).digest()


_COLUMNS = "id, n, CAST(turn_id AS BLOB), CAST(kind AS BLOB), version, CAST(body AS BLOB), at, hash"
_READ = f"SELECT {_COLUMNS} FROM events WHERE session = ? AND n > ? AND n <= ? ORDER BY n"
_READ_ONE = f"SELECT {_COLUMNS} FROM events WHERE id = ?"
_PLACES = (
    "SELECT id, n FROM log INDEXED BY log_place WHERE session = ? AND n > ? AND n <= ? ORDER BY n"
)
_SCAN = (
    "SELECT id, n FROM log NOT INDEXED WHERE id BETWEEN ? AND ?"
    " AND session = ? AND n > ? AND n <= ?"
)
_SCAN_IDS = 1_000

MAX_N = 1 << 62
PAGE_DAMAGE = "its page is damaged"


class LogRow(NamedTuple):
    id: int
    n: int
    turn_id: str
    kind: str
    version: int
    body: bytes
    at: float
    hash: bytes


class UnreadableRow(NamedTuple):
    """A record that exists but cannot be used. Its id is 0 when even the id cannot be read."""

    id: int
    n: int
    why: str


class LogRows(NamedTuple):
    whole: list[LogRow]
    damaged: list[UnreadableRow]


def read_rows(db: sqlite3.Connection, session: int, after: int = 0, upto: int = MAX_N) -> LogRows:
    """Return the records with after < n <= upto that the session itself stores, in order."""
    with ignore_damage():
        found = db.execute(_READ, (session, after, upto)).fetchall()
        rows = LogRows([], [])
        for raw in found:
            _sort(raw, rows)
        return rows
    return _read_one_by_one(db, session, after, upto)


def last_n(db: sqlite3.Connection, session: int) -> int:
    """Return the highest number used in the session; the number of a lost record is not reused."""
    row = db.execute(
        "SELECT max(coalesce((SELECT max(n) FROM log WHERE session = ?1), 0),"
        " coalesce((SELECT max(n) FROM quarantine WHERE session = ?1), 0))",
        (session,),
    ).fetchone()
    return int(row[0])


_TYPES = (int, int, bytes, bytes, int, bytes, float, bytes)


def _sort(raw: tuple[Any, ...], rows: LogRows) -> None:
    id, n, turn_id, kind, version, body, at, digest = raw
    if tuple(map(type, raw)) != _TYPES:
        if isinstance(id, int) and isinstance(n, int):
            rows.damaged.append(UnreadableRow(id, n, "its columns have the wrong types"))
        return
    try:
        row = LogRow(id, n, turn_id.decode(), kind.decode(), version, body, at, digest)
    except UnicodeDecodeError:
        rows.damaged.append(UnreadableRow(id, n, "its turn id is not text"))
    else:
        rows.whole.append(row)


def _read_one_by_one(db: sqlite3.Connection, session: int, after: int, upto: int) -> LogRows:
    """Read one record at a time, so that a bad page costs only its own records."""
    rows = LogRows([], [])
    for id, n in _positions(db, session, after, upto):
        try:
            raw = db.execute(_READ_ONE, (id,)).fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            rows.damaged.append(UnreadableRow(id, n, f"{PAGE_DAMAGE} ({error})"))
            continue
        if raw is None:
            rows.damaged.append(UnreadableRow(id, n, f"{PAGE_DAMAGE} (it is listed but missing)"))
        else:
            _sort(raw, rows)
    return rows


def _positions(
    db: sqlite3.Connection, session: int, after: int, upto: int
) -> list[tuple[int, int]]:
    with ignore_damage():
        return db.execute(_PLACES, (session, after, upto)).fetchall()
    # The index is damaged: find the positions in the table itself.
    newest = "SELECT max(id) FROM log"
    last_id = first_readable(db, newest, f"{newest} INDEXED BY log_place")

    def scan(first: int, last: int) -> list[tuple[int, int]]:
        return db.execute(_SCAN, (first, last, session, after, upto)).fetchall()

    places: list[tuple[int, int]] = []
    for first in range(1, last_id + 1, _SCAN_IDS):
        places += read_around_damage(scan, first, first + _SCAN_IDS - 1)
    return sorted(places, key=lambda place: place[1])


# A fork of a fork shares with the oldest only what its parent shares.
ABOVE = (
    "WITH RECURSIVE above(session, shared) AS ("
    " SELECT parent, parent_n FROM sessions WHERE session = ? AND parent_n > 0 UNION ALL"
    " SELECT s.parent, min(s.parent_n, shared) FROM above JOIN sessions AS s USING (session)"
    " WHERE s.parent_n > 0)"
)
_COUNTED = {"message_received": 1, "reply_added": 1, "withdrawn": -1}
_COUNT = (
    "SELECT coalesce(sum(iif(kind = 'withdrawn', -1, 1)), 0) FROM log JOIN shapes USING (shape)"
    " WHERE session = ? AND n <= ? AND kind IN ('message_received', 'reply_added', 'withdrawn')"
)
_RECEIVED = (
    "SELECT shape, CAST(rest AS BLOB) FROM log INDEXED BY log_place WHERE session = ? AND n <= ?"
    " AND shape IN (SELECT shape FROM shapes WHERE kind = 'message_received') ORDER BY n"
)


def shared_messages(db: sqlite3.Connection, session: int) -> int:
    """Return the number of messages the session started with."""
    return sum(_count(db, *part) for part in _ancestors(db, session))


def shared_preview(db: sqlite3.Connection, session: int) -> str:
    """Return the beginning of the first message that a person wrote in an ancestor."""
    query = "SELECT version, CAST(head AS BLOB), CAST(tail AS BLOB) FROM shapes WHERE shape = ?"
    for part in _ancestors(db, session):
        for shape, rest in db.execute(_RECEIVED, part):
            version, head, tail = db.execute(query, (shape,)).fetchone()
            event = readable_event("message_received", version, head + rest + tail)
            if isinstance(event, MessageReceived) and (found := preview_of(event)):
                return found
    return ""


def _ancestors(db: sqlite3.Connection, session: int) -> list[tuple[int, int]]:
    """Return the ancestors, oldest first, each with its last shared record."""
    return db.execute(f"{ABOVE} SELECT session, shared FROM above", (session,)).fetchall()[::-1]


def _count(db: sqlite3.Connection, session: int, shared: int) -> int:
    with ignore_damage():
        return int(db.execute(_COUNT, (session, shared)).fetchone()[0])
    return sum(_COUNTED.get(row.kind, 0) for row in read_rows(db, session, 0, shared).whole)


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
    """Return the segments of a session's history: the oldest ancestor first, the session itself
    last; raise NotFound."""
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
    """Return the records, each with the id of the session that stores it, and the newly found
    damaged ones. Records of a newer Hermes are skipped."""
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


def quarantine(db: sqlite3.Connection, lost: Iterable[DamagedRecord], now: float) -> None:
    for session, session_id, record in lost:
        found = db.execute(
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
    """Return the next events of these kinds, oldest first."""
    where = "id > ?"
    values: list[object] = [cursor]
    if session_id:
        where += " AND session = (SELECT session FROM sessions WHERE id = ?)"
        values.append(session_id)
    return _find_items(db, where, values, kinds, f"id LIMIT {limit}")


def events_since(
    db: sqlite3.Connection, at: float, kinds: Sequence[str], *, limit: int = 1_000
) -> list[FeedItem]:
    """Return the newest events of these kinds since `at`, oldest first."""
    return _find_items(db, "at >= ?", [at], kinds, f"id DESC LIMIT {limit}")


def _find_items(
    db: sqlite3.Connection, where: str, values: list[object], kinds: Sequence[str], order: str
) -> list[FeedItem]:
    """Return the matching records, oldest first."""
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
