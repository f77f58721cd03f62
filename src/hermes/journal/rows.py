"""Reads the stored records of a session, as far as a damaged file allows."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from hermes.journal.faults import is_damage

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
    """A record that exists and cannot be used. Its id is 0 when not even that can be read."""

    id: int
    n: int
    why: str


class LogRows(NamedTuple):
    whole: list[LogRow]
    damaged: list[UnreadableRow]


def read_rows(db: sqlite3.Connection, session: int, after: int = 0, upto: int = MAX_N) -> LogRows:
    """The records with after < n <= upto that the session itself stores, in order."""
    try:
        found = db.execute(_READ, (session, after, upto)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return _read_one_by_one(db, session, after, upto)
    rows = LogRows([], [])
    for raw in found:
        _sort(raw, rows)
    return rows


def last_n(db: sqlite3.Connection, session: int) -> int:
    """The highest number used in the session; the number of a lost record is not reused."""
    row = db.execute(
        "SELECT max(coalesce((SELECT max(n) FROM log WHERE session = ?1), 0),"
        " coalesce((SELECT max(n) FROM quarantine WHERE session = ?1), 0))",
        (session,),
    ).fetchone()
    return int(row[0])


def _sort(raw: tuple[object, ...], rows: LogRows) -> None:
    match raw:
        case (
            int(id),
            int(n),
            bytes(turn_id),
            bytes(kind),
            int(version),
            bytes(body),
            float(at),
            bytes(digest),
        ):
            try:
                row = LogRow(id, n, turn_id.decode(), kind.decode(), version, body, at, digest)
            except UnicodeDecodeError:
                rows.damaged.append(UnreadableRow(id, n, "its turn id is not text"))
            else:
                rows.whole.append(row)
        case (int(id), int(n), *_):
            rows.damaged.append(UnreadableRow(id, n, "its columns have the wrong types"))


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
    try:
        return db.execute(_PLACES, (session, after, upto)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    places = []
    for first in range(1, _last_id(db) + 1, _SCAN_IDS):
        places += _scan(db, (first, first + _SCAN_IDS - 1), (session, after, upto))
    return sorted(places, key=lambda place: place[1])


def _scan(
    db: sqlite3.Connection, ids: tuple[int, int], wanted: tuple[int, int, int]
) -> list[tuple[int, int]]:
    """Find positions in the table itself, halving a range until only the bad page is left out."""
    try:
        return db.execute(_SCAN, (*ids, *wanted)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    first, last = ids
    if first == last:
        return []
    middle = (first + last) // 2
    return _scan(db, (first, middle), wanted) + _scan(db, (middle + 1, last), wanted)


def _last_id(db: sqlite3.Connection) -> int:
    for query in ("SELECT max(id) FROM log", "SELECT max(id) FROM log INDEXED BY log_place"):
        try:
            return int(db.execute(query).fetchone()[0] or 0)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
    return 0
