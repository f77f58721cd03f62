"""A journal to search in: the tables that the index reads, filled by hand."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

from hermes.codec.json import encode
from hermes.core.events import DurableEvent, MessageReceived, ReplyAdded, ToolFinished, TurnStarted
from hermes.core.messages import AssistantMessage, Text, ToolResult, Usage, user_says
from hermes.journal.index.source import Role

NOON = 1_700_000_000.0
DAY = 86_400.0


class Diary:
    """Writes events as the journal does. Each message is a minute later than the one before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sessions: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
            "CREATE TABLE sessions(session INTEGER PRIMARY KEY, id TEXT UNIQUE);"
            "CREATE TABLE events(id INTEGER PRIMARY KEY, session INTEGER, n INTEGER,"
            " turn_id TEXT, kind TEXT, version INTEGER, body TEXT, at REAL, hash BLOB);"
        )

    def say(
        self, text: str, *, session: str = "s1", role: Role = "user", at: float | None = None
    ) -> int:
        """The id of the new event."""
        return self.add(event_of(text, role), session=session, at=at)

    def say_all(self, texts: list[str], *, session: str = "s1", role: Role = "user") -> list[int]:
        self._db.execute("BEGIN")
        ids = [self.say(text, session=session, role=role) for text in texts]
        self._db.execute("COMMIT")
        return ids

    def add(self, event: DurableEvent, *, session: str = "s1", at: float | None = None) -> int:
        kind = str(type(event).__struct_config__.tag)
        return self.add_body(encode(event).decode(), kind=kind, session=session, at=at)

    def add_body(
        self, body: str, *, kind: str, session: str = "s1", at: float | None = None
    ) -> int:
        if session not in self._sessions:
            self._db.execute("INSERT INTO sessions(id) VALUES (?)", (session,))
            self._sessions[session] = len(self._sessions) + 1
        (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()
        self._counts[session] += 1
        when = NOON + 60 * last if at is None else at
        place = (last + 1, self._sessions[session], self._counts[session])
        row = (*place, "turn", kind, 1, body, when, b"")
        self._db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return int(last) + 1

    def delete_session(self, session: str) -> None:
        self._db.execute(
            "DELETE FROM events WHERE session = (SELECT session FROM sessions WHERE id = ?)",
            (session,),
        )

    def close(self) -> None:
        self._db.close()


def event_of(text: str, role: Role) -> DurableEvent:
    match role:
        case "user":
            return MessageReceived(message=user_says(text))
        case "assistant":
            message = AssistantMessage(parts=(Text(text=text),))
            return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")
        case "tool":
            result = ToolResult(call_id="c", name="read_file", parts=(Text(text=text),))
            return ToolFinished(result=result)


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes | bytearray) -> None:
    path.write_bytes(data)


def turn_started() -> DurableEvent:
    return TurnStarted(takes=(1,))
