"""How the index reads the journal, and the searchable part of an event."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value
from hermes.journal.connections import (
    ignore_damage,
    is_forbidden,
    is_read_only_copy,
    journal_error,
    open_immutable,
    open_raw,
    read_around_damage,
)

Role = Literal["user", "assistant", "tool"]
ROLES: dict[str, Role] = {
    "message_received": "user",
    "reply_added": "assistant",
    "tool_finished": "tool",
}
KINDS = tuple(ROLES)
"""The event kinds that carry text."""

LONGEST_TEXT = 262_144
"""Characters of one event that are indexed; the rest of a longer one is not found."""


class EventRow(NamedTuple):
    """An event as stored in the journal. `id` grows over all sessions, `n` within one."""

    id: int
    session_id: str
    n: int
    kind: str
    at: float
    body: str | bytes


class _Part(Value):
    type: str = ""
    text: str = ""
    name: str = ""
    arguments: JsonObject = {}


class _Said(Value):
    parts: tuple[_Part, ...] = ()


class _Body(Value):
    """The fields that the three kinds of events share; all others are skipped."""

    message: _Said = _Said()
    result: _Said = _Said()


def text_of(row: EventRow) -> str:
    """Return the text of an event: messages and the arguments of tool calls, without reasoning.
    Empty for a body that cannot be read."""
    if row.kind not in ROLES:
        return ""
    try:
        body = decode(_Body, row.body)
    except DecodeError:
        return ""
    content = body.result if row.kind == "tool_finished" else body.message
    texts: list[str] = []
    for part in content.parts:
        if part.type == "text":
            texts.append(part.text)
        elif part.type == "tool_call":
            texts.append(" ".join([part.name, *_leaves(part.arguments)]))
    return "\n".join(filter(None, texts))[:LONGEST_TEXT]


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return [leaf for item in items for leaf in _leaves(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


# Columns of a damaged record may hold anything; none of it may stop the reading of others.
_SELECT = (
    "SELECT e.id, CAST(s.id AS BLOB), e.n, e.kind, coalesce(CAST(e.at AS REAL), 0.0),"
    " CAST(e.body AS BLOB) FROM events e JOIN sessions s USING (session)"
)
_OF_KINDS = f"e.kind IN ({', '.join(repr(kind) for kind in KINDS)})"
_NEXT = f"{_SELECT} WHERE e.id > ? AND {_OF_KINDS} ORDER BY e.id LIMIT ?"
_RANGE = f"{_SELECT} WHERE e.id BETWEEN ? AND ? AND {_OF_KINDS} ORDER BY e.id"
_IDS_AT_ONCE = 500


class JournalFile:
    """The journal's SQLite file, read only. Records on damaged pages are left out. Raises
    JournalError when the file cannot be read at all. Called in worker threads, one at a time.
    Closed between searches; the next call opens it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def exists(self) -> bool:
        return self._path.exists()

    def rows(self, after_id: int, limit: int) -> list[EventRow]:
        """Return the next rows of `KINDS` with a greater id, ordered by id; fewer than the limit
        only at the end."""
        with self._translate_errors():
            with ignore_damage():
                return self._all(_NEXT, (after_id, limit))
            (last_id,) = self._connection().execute("SELECT max(id) FROM events").fetchone()
            found: list[EventRow] = []
            for first in range(after_id + 1, (last_id or 0) + 1, _IDS_AT_ONCE):
                found += read_around_damage(self._read_range, first, first + _IDS_AT_ONCE - 1)
                if len(found) >= limit:
                    break
            return found[:limit]

    def fetch(self, ids: Sequence[int]) -> list[EventRow]:
        """Return the rows that exist, unordered."""
        found: list[EventRow] = []
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = tuple(ids[start : start + _IDS_AT_ONCE])
            sql = f"{_SELECT} WHERE e.id IN ({', '.join('?' * len(some))})"
            with self._translate_errors():
                with ignore_damage():
                    found += self._all(sql, some)
                    continue
                for id in some:
                    found += read_around_damage(self._read_range, id, id)
        return found

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise journal_error(error, self._path) from error

    def _read_range(self, first: int, last: int) -> list[EventRow]:
        return self._all(_RANGE, (first, last))

    def _all(self, sql: str, values: tuple[object, ...]) -> list[EventRow]:
        return [
            EventRow(id, session.decode("utf-8", "replace"), n, kind, at, body)
            for id, session, n, kind, at, body in self._connection().execute(sql, values)
        ]

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = open_raw(self._path, mode="ro")
            try:
                self._db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            except sqlite3.Error as error:
                if not is_forbidden(error) or not is_read_only_copy(self._path):
                    raise
                self._db = open_immutable(self._path)
        return self._db
