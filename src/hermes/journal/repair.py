"""Repairs a damaged file in place: copies all readable rows, also from unreachable pages."""

from __future__ import annotations

import logging
import os
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hermes.core.events import SessionOpened
from hermes.journal import ledger, schema
from hermes.journal.body_templates import readable_event
from hermes.journal.connections import (
    connect,
    first_readable,
    ignore_damage,
    is_damage,
    name_of,
    open_raw,
    read_around_damage,
)
from hermes.journal.reading import HASH_BYTES, PAGE_DAMAGE

log = logging.getLogger(__name__)

PAGE = 4096
# A damaged header may claim any size.
MOST_MISSING_BYTES = 64 * 1024 * 1024 * 1024
_LEAF = 0x0D
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

# One letter per column: 0 the row id, i integer, n integer or null, t text, f number, h a hash.
LOG_COLUMNS = "0iititfh"
SESSION_COLUMNS = "0tni"
_TYPES: dict[str, tuple[type, ...]] = {
    "0": (type(None),),
    "i": (int,),
    "n": (int, type(None)),
    "t": (str,),
    "f": (int, float),
    "h": (bytes,),
}


class PageDamage(Exception):
    """The bytes are not valid; never leaves this module."""


def salvage_rows(path: Path, kinds: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows with these column types in a database file or its write-ahead log,
    unordered."""
    with path.open("rb") as file:
        data = file.read()
    is_wal = len(data) >= 4 and struct.unpack(">I", data[:4])[0] in _WAL_MAGIC
    header, before = (_WAL_HEADER, _FRAME_HEADER) if is_wal else (0, 0)
    starts = range(header + before, len(data), before + PAGE)
    for number, page in enumerate((data[at : at + PAGE] for at in starts), start=1):
        # Page 1 of a database begins with the file header.
        start = 100 if number == 1 and not is_wal else 0
        if page[start : start + 1] == bytes([_LEAF]):
            yield from _rows(page, start, b"" if is_wal else data, kinds)


def _rows(page: bytes, start: int, data: bytes, kinds: str) -> Iterator[tuple[object, ...]]:
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for index in range(min(count, PAGE // 4)):
        position = start + 8 + 2 * index
        cell = int.from_bytes(page[position : position + 2], "big")
        try:
            row_id, payload = _cell(page, cell, data)
            yield _columns(row_id, payload, kinds)
        except (PageDamage, IndexError, UnicodeDecodeError, struct.error):
            continue


def _cell(page: bytes, position: int, data: bytes) -> tuple[int, bytes]:
    size, position = _varint(page, position)
    row_id, position = _varint(page, position)
    most, least = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
    if size <= most:
        return row_id, _slice(page, position, size)
    local = least + (size - least) % (PAGE - 4)
    local = local if local <= most else least
    payload = _slice(page, position, local)
    following = int.from_bytes(_slice(page, position + local, 4), "big")
    return row_id, payload + _overflow(data, following, size - local)


def _overflow(data: bytes, number: int, size: int) -> bytes:
    """Return the rest of a long row, page by page."""
    if size > len(data):
        raise PageDamage
    parts = []
    while size > 0:
        page = _slice(data, (number - 1) * PAGE, PAGE)
        parts.append(page[4 : 4 + size])
        size -= PAGE - 4
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _columns(row_id: int, payload: bytes, kinds: str) -> tuple[object, ...]:
    header, position = _varint(payload, 0)
    types = []
    while position < header:
        kind, position = _varint(payload, position)
        types.append(kind)
    if position != header or len(types) != len(kinds) or row_id < 1:
        raise PageDamage
    values: list[object] = []
    for wanted, kind in zip(kinds, types, strict=True):
        start = position
        value, position = _value(payload, start, kind)
        if type(value) not in _TYPES[wanted] or (wanted == "h" and position - start != HASH_BYTES):
            raise PageDamage
        values.append(row_id if wanted == "0" else value)
    if position != len(payload):
        raise PageDamage
    return tuple(values)


def _value(payload: bytes, position: int, kind: int) -> tuple[object, int]:
    if kind in _INTEGER_BYTES:
        end = position + _INTEGER_BYTES[kind]
        return int.from_bytes(_slice(payload, position, end - position), "big", signed=True), end
    if kind == 7:
        return struct.unpack(">d", _slice(payload, position, 8))[0], position + 8
    if kind in (8, 9):
        return kind - 8, position
    if kind == 0:
        return None, position
    if kind < 12:
        raise PageDamage
    size = (kind - 12) // 2
    raw = _slice(payload, position, size)
    return (raw.decode() if kind % 2 else raw), position + size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[position + index]
        if index == 8:
            return (value << 8) | byte, position + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, position + index + 1
    raise PageDamage


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start < 0 or size < 0 or start + size > len(data):
        raise PageDamage
    return data[start : start + size]


# In the order in which they are copied; derived tables are rebuilt.
_BY_ROWID = {
    "log": "id",
    "sessions": "session",
    "leases": "session",
    "inbox": "id",
    "quarantine": "event",
    "removed": "session",
    "carried": "rowid",
    "received": "id",
    "posts": "id",
    "due_times": "id",
}
_WHOLE = ("meta", "owners", "routes")
_STEP = 1_000


def repair_file(path: Path, now: float) -> bool:
    """Rebuild the tables if the file is damaged, and return whether it was. The caller holds the
    write lock. The damaged file is kept under another name, in place of an earlier one."""
    earlier = [*path.parent.glob(f"{path.name}.damaged-*")]
    damaged_copy = path.with_name(f"{path.name}.damaged-{int(now)}")
    try:
        with closing(_open_damaged(path)) as db:
            if _is_sound(db):
                return False
        copies = _keep_copy(path, damaged_copy)
        with closing(_open_damaged(path)) as db, _fresh_database(path) as other:
            _copy_readable(db, copies, other, now)
            # Through SQLite, not by renaming: other processes have the file open.
            other.backup(db)
    except sqlite3.DatabaseError as error:
        if name_of(error) != "SQLITE_NOTADB":
            raise
        _replace(path, damaged_copy, now)
    for file in earlier:
        if not file.name.startswith(damaged_copy.name):
            file.unlink(missing_ok=True)
    log.warning("the journal was damaged and is repaired", extra={"kept": str(damaged_copy)})
    return True


def _keep_copy(path: Path, damaged_copy: Path) -> list[Path]:
    """Copy the damaged file and return the copies to salvage rows from. SQLite refuses every
    statement on a file that is shorter than its header says, so such a file is made longer."""
    with closing(_open_damaged(path)) as db:
        try:
            with closing(sqlite3.connect(damaged_copy)) as copy:
                damaged_copy.chmod(0o600)
                db.backup(copy)
            return [damaged_copy]
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
    # Rarely needed, and slow to load.
    import subprocess

    copies = []
    for suffix in ("", "-wal"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            copies.append(damaged_copy.with_name(damaged_copy.name + suffix))
            # By another process: closing the file here would drop the locks of this one.
            subprocess.run(["cp", "--", str(file), str(copies[-1])], check=True)
            copies[-1].chmod(0o600)
    _lengthen(path, copies[0])
    return copies


def _lengthen(path: Path, copy: Path) -> None:
    """Add empty pages until the file has as many as its header says."""
    with copy.open("rb") as file:
        header = file.read(100)
    pages = int.from_bytes(header[28:32], "big")
    size = path.stat().st_size
    wanted = max(pages * PAGE, -(-size // PAGE) * PAGE)
    if size < wanted <= size + MOST_MISSING_BYTES:
        os.truncate(path, wanted)


def _open_damaged(path: Path) -> sqlite3.Connection:
    """Open the file even when its schema is damaged: then it can run no statement, but it can be
    copied and overwritten."""
    try:
        return connect(path, mode="rw")
    except sqlite3.DatabaseError as error:
        if not name_of(error).startswith("SQLITE_CORRUPT"):
            raise
    return open_raw(path, mode="rw")


def _replace(path: Path, damaged_copy: Path, now: float) -> None:
    """Replace a file that SQLite does not recognise, which nobody can have open."""
    moved = []
    for suffix in ("", "-wal", "-shm"):
        old = path.with_name(path.name + suffix)
        new = damaged_copy.with_name(damaged_copy.name + suffix)
        if old.exists():
            old.rename(new)
            moved.append(new)
    with _fresh_database(path) as other:
        _copy_readable(None, [file for file in moved if not file.name.endswith("-shm")], other, now)
        with closing(connect(path, mode="rwc")) as db:
            path.chmod(0o600)
            other.backup(db)


@contextmanager
def _fresh_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Create an empty database beside the journal, which is deleted at the end."""
    file = path.with_name(f"{path.name}.mending")
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        file.chmod(0o600)
        yield other
    file.unlink()


def _is_sound(db: sqlite3.Connection) -> bool:
    try:
        return bool(db.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        if name_of(error) == "SQLITE_NOTADB" or not is_damage(error):
            raise
        return False


def _copy_readable(
    db: sqlite3.Connection | None, files: Sequence[Path], other: sqlite3.Connection, now: float
) -> None:
    other.execute("BEGIN")
    schema.create(other)
    if db is not None:
        for table in _WHOLE:
            _insert_rows(other, table, _try_query(db, f"SELECT * FROM {table}"))
        for table, key in _BY_ROWID.items():
            if _try_query(db, f"SELECT 1 FROM sqlite_master WHERE name = '{table}'"):
                _insert_rows(other, table, _readable(db, table, key))
    for file in files:
        # Rows that the damaged b-trees no longer reach. These may include deleted records.
        _insert_rows(other, "sessions", salvage_rows(file, SESSION_COLUMNS))
        _insert_rows(other, "log", salvage_rows(file, LOG_COLUMNS))
    other.execute("DELETE FROM log WHERE session IN (SELECT session FROM removed)")
    other.execute("DELETE FROM sessions WHERE session IN (SELECT session FROM removed)")
    # Numbers of deleted sessions are never reused.
    seq = "UPDATE sqlite_sequence SET seq = max(seq, (SELECT max(session) FROM removed))"
    other.execute(f"{seq} WHERE name = 'sessions' AND EXISTS (SELECT 1 FROM removed)")
    # Recovered records leave the quarantine.
    back = "DELETE FROM quarantine WHERE why LIKE ? AND event IN (SELECT id FROM log)"
    other.execute(back, (f"{PAGE_DAMAGE}%",))
    if db is not None:
        # Records that the old index knows and that could not be read.
        places = _try_query(db, "SELECT id, session, n FROM log INDEXED BY log_place")
        there = {id for (id,) in other.execute("SELECT id FROM log")}
        lost = [(*record, PAGE_DAMAGE, now) for record in places if record[0] not in there]
        other.executemany("INSERT OR IGNORE INTO quarantine VALUES (?, ?, ?, ?, ?)", lost)
    _find_sessions(db, other)
    ledger.rebuild(other)
    other.execute("COMMIT")


def _insert_rows(other: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    width = len(other.execute(f"PRAGMA table_info({table})").fetchall())
    marks = ",".join("?" * width)
    other.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)


def _readable(db: sqlite3.Connection, table: str, key: str) -> Iterator[tuple[object, ...]]:
    """Yield every readable row, in ranges that are halved around a bad page."""
    queries = [f"SELECT max({key}) FROM {table} NOT INDEXED"]
    if table == "log":
        queries.append("SELECT max(id) FROM log INDEXED BY log_place")
    if table in ("sessions", "inbox", "received", "posts", "due_times"):
        queries.append(f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{table}'")
    query = f"SELECT * FROM {table} NOT INDEXED WHERE {key} BETWEEN ? AND ? ORDER BY {key}"

    def read(first: int, last: int) -> list[tuple[object, ...]]:
        return db.execute(query, (first, last)).fetchall()

    last = first_readable(db, *queries)
    for first in range(1, last + 1, _STEP):
        yield from read_around_damage(read, first, min(first + _STEP - 1, last))


def _find_sessions(db: sqlite3.Connection | None, other: sqlite3.Connection) -> None:
    """Restore lost session rows from the index of ids and from their first record, or under a name
    that says what happened."""
    query = "SELECT session, id FROM sessions INDEXED BY sqlite_autoindex_sessions_1"
    names = {} if db is None else dict(_try_query(db, query))
    query = "SELECT DISTINCT session FROM log WHERE session NOT IN (SELECT session FROM sessions)"
    for (session,) in other.execute(query).fetchall():
        parent, parent_n = _parent_of(other, session)
        other.execute(
            "INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?)",
            (session, names.get(session, f"lost_{session}"), parent, parent_n),
        )


def _parent_of(other: sqlite3.Connection, session: int) -> tuple[int | None, int]:
    query = (
        "SELECT n, kind, version, CAST(body AS BLOB) FROM events WHERE session = ?"
        " ORDER BY n LIMIT 1"
    )
    n, kind, version, body = other.execute(query, (session,)).fetchone()
    event = readable_event(kind, version, body)
    if not isinstance(event, SessionOpened) or n != event.parent_n + 1:
        return None, 0
    row = other.execute("SELECT session FROM sessions WHERE id = ?", (event.parent,)).fetchone()
    return (row[0], event.parent_n) if row else (None, event.parent_n)


def _try_query(db: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    """Return all rows, or none when they cannot be read."""
    with ignore_damage():
        return db.execute(query).fetchall()
    return []
