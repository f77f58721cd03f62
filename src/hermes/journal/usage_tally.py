"""Counts tools, messages and skill outcomes in the journal."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value

_LOADED = (
    "SELECT session, turn_id, body FROM events"
    " WHERE kind = 'tool_finished' AND instr(body, 'skill_view') > 0"
)
_ENDED = "SELECT turn_id, body FROM events WHERE session = ? AND kind = 'turn_ended'"

Text = bytes | str


def skill_results(db: sqlite3.Connection) -> list[tuple[Text, Text]]:
    """Returns each `skill_view` result with the end of its turn, both encoded."""
    loaded = db.execute(_LOADED).fetchall()
    ends: dict[tuple[int, str], Text] = {}
    for session in {row[0] for row in loaded}:
        ends |= {(session, turn): body for turn, body in db.execute(_ENDED, (session,))}
    return [
        (body, ends[session, turn]) for session, turn, body in loaded if (session, turn) in ends
    ]


FORMAT = 1
HOUR_SECONDS = 3600
BATCH = 20_000

Kind = Literal["tool", "failed", "skill", "said"]

_SCHEMA = """
CREATE TABLE tally(
    session INTEGER NOT NULL, hour INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY(session, hour, kind, name)) WITHOUT ROWID;
CREATE TABLE upto(id INTEGER NOT NULL);
INSERT INTO upto VALUES (0);
"""
_NEW = (
    "SELECT log.id, session, at, kind, head || rest || tail FROM log JOIN shapes USING (shape)"
    " WHERE log.id > ? AND log.id <= ? AND kind IN ('tool_finished', 'message_received')"
)
_ADD = (
    "INSERT INTO tally VALUES (?, ?, ?, ?, ?) ON CONFLICT (session, hour, kind, name)"
    " DO UPDATE SET count = count + excluded.count"
)

Key = tuple[int, int, Kind, str]


class SessionCounts(NamedTuple):
    session: int
    hour: int
    kind: Kind
    name: str
    times: int


class _Result(Value):
    name: str = ""
    failed: bool = False
    details: JsonObject = {}


class _Finished(Value):
    result: _Result


class _Message(Value):
    origin: str = "user"


class _Received(Value):
    message: _Message


class UsageTally:
    """A derived file that can be deleted at any time. Methods block."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def counts(self, journal: sqlite3.Connection, since: float) -> list[SessionCounts]:
        """Updates the counts from the journal and returns them from the hour of `since` on."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return self._load_counts(str(self._path), journal, since)
        except (sqlite3.OperationalError, OSError):
            # On a read-only home, count in memory.
            return self._load_counts(":memory:", journal, since)

    def _load_counts(
        self, path: str, journal: sqlite3.Connection, since: float
    ) -> list[SessionCounts]:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as db:
            self._prepare(db, journal)
            self._add(db, journal)
            query = "SELECT session, hour, kind, name, count FROM tally WHERE hour >= ?"
            return [SessionCounts(*row) for row in db.execute(query, (int(since // HOUR_SECONDS),))]

    def _prepare(self, db: sqlite3.Connection, journal: sqlite3.Connection) -> None:
        """Resets the counts if their format or the journal has changed."""
        db.execute("BEGIN IMMEDIATE")
        known = db.execute("PRAGMA user_version").fetchone()[0] == FORMAT
        if known and _upto(db) > _newest(journal):
            known = False
        if not known:
            db.execute("DROP TABLE IF EXISTS tally")
            db.execute("DROP TABLE IF EXISTS upto")
            for statement in _SCHEMA.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("COMMIT")

    def _add(self, db: sqlite3.Connection, journal: sqlite3.Connection) -> None:
        end = _newest(journal)
        while True:
            db.execute("BEGIN IMMEDIATE")
            start = _upto(db)
            stop = min(start + BATCH, end)
            if start < stop:
                sums = _sums(journal, start, stop)
                db.executemany(_ADD, [(*key, count) for key, count in sums.items()])
                db.execute("UPDATE upto SET id = ?", (stop,))
            db.execute("COMMIT")
            if stop >= end:
                return


def _upto(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT id FROM upto").fetchone()[0])


def _newest(journal: sqlite3.Connection) -> int:
    return int(journal.execute("SELECT coalesce(max(id), 0) FROM log").fetchone()[0])


def _sums(journal: sqlite3.Connection, start: int, stop: int) -> Counter[Key]:
    sums: Counter[Key] = Counter()
    for _, session, at, kind, body in journal.execute(_NEW, (start, stop)):
        hour = int(at // HOUR_SECONDS)
        try:
            if kind == "message_received":
                origin = decode(_Received, body).message.origin
                sums[session, hour, "said", "user" if origin == "user" else "other"] += 1
                continue
            result = decode(_Finished, body).result
        except DecodeError:
            continue
        sums[session, hour, "tool", result.name] += 1
        if result.failed:
            sums[session, hour, "failed", result.name] += 1
        elif result.name == "skill_view" and isinstance(skill := result.details.get("name"), str):
            sums[session, hour, "skill", skill] += 1
    return sums
