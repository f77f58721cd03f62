"""The SQLite ledger of memory: all changes and the current entries."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from msgspec.structs import asdict, astuple

from hermes.codec.json import decode, encode
from hermes.core.errors import HermesError
from hermes.core.scrub import scrub_database
from hermes.memory.entries import ChangeSource, MemoryChange, MemoryEntry, Target

FORMAT = 1
BUSY_SECONDS = 30.0
SCHEMA = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE changes(
    change INTEGER PRIMARY KEY AUTOINCREMENT, entry INTEGER NOT NULL, scope TEXT NOT NULL,
    target TEXT NOT NULL, action TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL,
    source TEXT NOT NULL, held TEXT NOT NULL, open INTEGER NOT NULL, settles INTEGER NOT NULL,
    reverts INTEGER NOT NULL, finding TEXT NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0);
CREATE INDEX changes_entry ON changes(entry);
CREATE INDEX changes_open ON changes(scope) WHERE open = 1;
CREATE TABLE entries(
    entry INTEGER PRIMARY KEY, scope TEXT NOT NULL, target TEXT NOT NULL, text TEXT NOT NULL,
    change INTEGER NOT NULL, since REAL NOT NULL, finding TEXT NOT NULL);
CREATE TABLE calls(key TEXT PRIMARY KEY, changes TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
    scope TEXT NOT NULL, target TEXT NOT NULL, digest BLOB NOT NULL, before BLOB NOT NULL,
    PRIMARY KEY(scope, target)) WITHOUT ROWID;
CREATE TABLE recalls(
    session TEXT NOT NULL, place INTEGER NOT NULL, said BLOB NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY(session, place)) WITHOUT ROWID;
"""
# The columns in the order of the fields of `MemoryChange` and `MemoryEntry`.
_CHANGE = (
    "change, entry, target, action, text, at, source, held, open, settles, reverts, finding,"
    " forgotten"
)
_ENTRY = "entry, target, text, change, since, finding"


class LedgerError(HermesError): ...


class MemoryLedger:
    """The changes and entries of one scope, on a connection used by one thread at a time. The file,
    which all scopes share, is created on first use."""

    def __init__(self, path: Path, scope: str) -> None:
        self.path = path
        self._scope = scope
        self._db: sqlite3.Connection | None = None

    @property
    def db(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = _open_ledger(self.path)
        return self._db

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    # Entries

    def entries(self, target: Target | None = None) -> list[MemoryEntry]:
        where = "scope = ?1 AND (?2 IS NULL OR target = ?2)"
        query = f"SELECT {_ENTRY} FROM entries WHERE {where} ORDER BY entry"
        rows = self.db.execute(query, (self._scope, target))
        fields = MemoryEntry.__struct_fields__
        return [MemoryEntry(**dict(zip(fields, row, strict=True))) for row in rows]

    def put_entry(self, entry: MemoryEntry) -> None:
        query = f"INSERT OR REPLACE INTO entries({_ENTRY}, scope) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self.db.execute(query, (*astuple(entry), self._scope))

    def drop_entry(self, entry: int) -> None:
        self.db.execute("DELETE FROM entries WHERE entry = ?", (entry,))

    # Changes

    def changes(self, **where: int) -> list[MemoryChange]:
        """Return the changes with these values of columns, oldest first."""
        conditions = "".join(f" AND {column} = ?" for column in where)
        query = f"SELECT {_CHANGE} FROM changes WHERE scope = ?{conditions} ORDER BY change"
        changes: list[MemoryChange] = []
        for row in self.db.execute(query, (self._scope, *where.values())):
            fields = dict(zip(MemoryChange.__struct_fields__, row, strict=True))
            fields["source"] = decode(ChangeSource, fields["source"])
            for flag in ("open", "forgotten"):
                fields[flag] = bool(fields[flag])
            changes.append(MemoryChange(**fields))
        return changes

    def origins(self, numbers: Collection[int]) -> tuple[str, ...]:
        """Return the sources that were in view at these changes, or at those that they answer."""
        query = (
            "SELECT c.change, c.source, held.source FROM changes c LEFT JOIN changes held"
            " ON held.change = c.settles AND c.settles > 0 WHERE c.scope = ?"
            """ AND (instr(c.source, '"origins":[') OR instr(held.source, '"origins":['))"""
        )
        rows = self.db.execute(query, (self._scope,))
        sources = [each for number, *both in rows if number in numbers for each in both if each]
        return tuple(sorted({o for each in sources for o in decode(ChangeSource, each).origins}))

    def put_change(self, change: MemoryChange) -> int:
        """Insert a change and return its number; `change.id` is ignored."""
        row = asdict(change) | {"id": None, "source": encode(change.source).decode()}
        marks = ", ".join("?" * (len(row) + 1))
        query = f"INSERT INTO changes({_CHANGE}, scope) VALUES ({marks})"
        made = self.db.execute(query, (*row.values(), self._scope)).lastrowid
        assert made is not None
        return made

    def settle(self, number: int) -> None:
        """Close a held change."""
        self.db.execute("UPDATE changes SET open = 0 WHERE change = ?", (number,))

    def next_entry(self) -> int:
        (last,) = self.db.execute("SELECT coalesce(max(entry), 0) FROM changes").fetchone()
        return int(last) + 1

    def next_time(self, now: float) -> float:
        """Return the time for the next change; it never runs backwards."""
        query = "SELECT at FROM changes ORDER BY change DESC LIMIT 1"
        row = self.db.execute(query).fetchone()
        return max(now, float(row[0])) if row else now

    # Idempotency keys

    def changes_of_call(self, key: str) -> tuple[int, ...] | None:
        """Return the changes that an earlier execution of this call made, if any."""
        row = self.db.execute("SELECT changes FROM calls WHERE key = ?", (key,)).fetchone()
        return decode(tuple[int, ...], row[0]) if row else None

    def record_call(self, key: str, changes: Sequence[int]) -> None:
        row = (key, encode(list(changes)).decode())
        self.db.execute("INSERT INTO calls VALUES (?, ?)", row)

    # File digests

    def file(self, target: Target) -> tuple[bytes, bytes]:
        """Return the digests of the expected and of the previous content."""
        query = "SELECT digest, before FROM files WHERE scope = ? AND target = ?"
        row = self.db.execute(query, (self._scope, target)).fetchone()
        return (bytes(row[0]), bytes(row[1])) if row else (b"", b"")

    def put_file(self, target: Target, digest: bytes, before: bytes) -> None:
        row = (self._scope, target, digest, before)
        self.db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)

    # Metadata

    def fact(self, name: str) -> str:
        row = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def put_fact(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    # Forgetting

    def forget_changes(
        self, numbers: Iterable[int], remove_phrases: Callable[[str], str]
    ) -> set[int]:
        """Delete the text of these changes, and of all changes of all scopes that contain a phrase;
        return their numbers."""
        texts = self.db.execute("SELECT change, text FROM changes WHERE text <> ''").fetchall()
        found = {*numbers, *(number for number, text in texts if remove_phrases(text) != text)}
        self.db.executemany(
            "UPDATE changes SET text = '', finding = '', open = 0, forgotten = 1 WHERE change = ?",
            [(number,) for number in found],
        )
        return found

    # Recalled text, per message

    def recalls(self, session: str) -> dict[int, tuple[bytes, str]]:
        query = "SELECT place, said, text FROM recalls WHERE session = ?"
        found = self.db.execute(query, (session,))
        return {index: (bytes(digest), text) for index, digest, text in found}

    def put_recall(self, session: str, index: int, digest: bytes, text: str) -> None:
        row = (session, index, digest, text)
        self.db.execute("INSERT OR REPLACE INTO recalls VALUES (?, ?, ?, ?)", row)

    def forget_recalls(self, remove_phrases: Callable[[str], str]) -> None:
        found = self.db.execute("SELECT session, place, text FROM recalls").fetchall()
        for session, index, text in found:
            if (rest := remove_phrases(text)) != text:
                self.db.execute(
                    "UPDATE recalls SET text = ? WHERE session = ? AND place = ?",
                    (rest, session, index),
                )

    def holders(self, remove_phrases: Callable[[str], str]) -> set[str]:
        """Return the scopes with entries that contain a phrase."""
        found = self.db.execute("SELECT scope, text FROM entries").fetchall()
        return {scope for scope, text in found if remove_phrases(text) != text}

    def scrub(self, patience_seconds: float) -> bool:
        """Return whether no deleted text remains in the file or its WAL."""
        return scrub_database(self.db, patience_seconds=patience_seconds)


def open_database(path: Path) -> sqlite3.Connection:
    """Open or create a private SQLite file that overwrites deleted text."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA secure_delete = ON")
    return db


def _open_ledger(path: Path) -> sqlite3.Connection:
    try:
        db = open_database(path)
        db.execute("PRAGMA synchronous = FULL")
        (found,) = db.execute("PRAGMA user_version").fetchone()
        if found > FORMAT:
            raise LedgerError("Memory was written by a newer Hermes; update this one.")
        if found < FORMAT:
            db.execute("BEGIN IMMEDIATE")
            # Another process may have created the tables meanwhile.
            if db.execute("PRAGMA user_version").fetchone() == (0,):
                for statement in filter(str.strip, SCHEMA.split(";\n")):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("COMMIT")
    except sqlite3.Error as error:
        raise LedgerError(
            f"Memory cannot be opened ({error}); move {path} away to rebuild it from "
            "MEMORY.md and USER.md."
        ) from error
    return db
