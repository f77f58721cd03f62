"""Exports sessions: JSON lines that can be imported again, and Markdown for people."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from hermes.codec.json import decode, encode, plain
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import NotFound
from hermes.core.events import MessageReceived, Record, ReplyAdded, ToolFinished
from hermes.journal.body_templates import is_newer
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import SessionFacts, facts_of
from hermes.journal.reading import history_segments, read_rows, read_session

FORMAT = "hermes-session-1"
ROLES = ("user", "assistant", "system", "tool")

Redact = Callable[[str], str]
# Fields that link the parts of a session; they are never redacted.
_FIXED = frozenset(("call", "call_id", "id", "key", "kind", "parent", "turn_id", "type"))


class ExportedMessage(Value):
    """A message as role and text. `n` is its record, `origin` its source if it is not the user."""

    n: int
    at: float
    role: str
    text: str
    origin: str = ""
    calls: tuple[str, ...] = ()
    tool: str = ""
    interrupted: bool = False


class EventLine(Value):
    """A record as it is stored. `body` is the event in JSON."""

    n: int
    at: float
    kind: str
    version: int
    body: JsonObject
    turn_id: str = ""


class SessionLine(SessionFacts, omit_defaults=False):
    """One session with all columns. A fork includes the records that it shares, so that it can be
    imported alone."""

    format: str = ""
    messages: tuple[ExportedMessage, ...] = ()
    events: tuple[EventLine, ...] = ()


async def export_lines(
    journal: SqliteJournal, session_ids: Sequence[str], *, redact: Redact | None = None
) -> AsyncIterator[bytes]:
    """Yield one line of JSON per session, in the order of the ids. `redact` is applied to every
    string of every event. Unreadable records are left out."""
    for session_id in session_ids:
        line = await journal.reading(partial(session_line, session_id=session_id))
        yield encode(line if redact is None else _redact(line, redact)) + b"\n"


async def export_markdown(
    journal: SqliteJournal, session_id: str, *, redact: Redact | None = None
) -> str:
    info = await journal.reading(partial(session_line, session_id=session_id))
    facts = (
        f"- session: {info.id}",
        f"- source: {info.source}",
        f"- model: {info.model} ({info.provider})",
        f"- started: {_iso(info.started_at)}",
    )
    parts = [f"# {info.title or info.preview or info.id}", "\n".join(facts)]
    parts += [_markdown(message) for message in info.messages]
    text = "\n\n".join(parts) + "\n"
    return redact(text) if redact else text


async def all_ids(journal: SqliteJournal) -> tuple[str, ...]:
    """Return every session, parents before their forks."""
    query = "SELECT id FROM sessions ORDER BY session"
    return await journal.reading(lambda db: tuple(id for (id,) in db.execute(query)))


def session_line(db: sqlite3.Connection, session_id: str) -> SessionLine:
    facts = facts_of(db, session_id)
    if facts is None:
        raise NotFound(f"There is no session {session_id}.")
    records, _ = read_session(db, session_id)
    readable = {record.n for record in records}
    events = [
        EventLine(
            n=row.n,
            at=row.at,
            kind=row.kind,
            version=row.version,
            body=decode(dict, row.body),
            turn_id=row.turn_id,
        )
        for segment in history_segments(db, session_id)
        for row in read_rows(db, segment.session, upto=segment.upto).whole
        if row.n in readable or is_newer(row.kind, row.version)
    ]
    columns = {name: getattr(facts, name) for name in facts.__struct_fields__}
    return SessionLine(
        **columns, format=FORMAT, messages=conversation_of(records), events=tuple(events)
    )


def conversation_of(records: Sequence[Record]) -> tuple[ExportedMessage, ...]:
    """Return the conversation in these records."""
    return tuple(message for record in records if (message := _exported_message(record)))


def _exported_message(record: Record) -> ExportedMessage | None:
    n, at, event = record.n, record.at, record.event
    if isinstance(event, MessageReceived):
        message = event.message
        role = message.origin if message.origin in ROLES else "user"
        origin = "" if message.origin == role else message.origin
        return ExportedMessage(n=n, at=at, role=role, text=message.text, origin=origin)
    if isinstance(event, ReplyAdded):
        calls = tuple(call.name for call in event.message.calls)
        return ExportedMessage(
            n=n,
            at=at,
            role="assistant",
            text=event.message.text,
            calls=calls,
            interrupted=event.message.stop == "interrupted",
        )
    if isinstance(event, ToolFinished):
        return ExportedMessage(
            n=n, at=at, role="tool", text=event.result.text, tool=event.result.name
        )
    return None


def _redact(line: SessionLine, redact: Redact) -> JsonObject:
    raw = plain(line)
    return {
        key: value if key in ("id", "parent", "format") else redact_texts(value, redact, _FIXED)
        for key, value in raw.items()
    }


def redact_texts(value: object, redact: Redact, fixed: frozenset[str] = frozenset()) -> object:
    """Return the JSON value with all its texts redacted, except those under the `fixed` keys."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            redact(key): item if key in fixed else redact_texts(item, redact, fixed)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_texts(item, redact, fixed) for item in value]
    return value


def _markdown(message: ExportedMessage) -> str:
    name = f"{message.role} {message.tool}".strip()
    calls = f"\n\n*calls {', '.join(message.calls)}*" if message.calls else ""
    return f"## {name} · {_iso(message.at)}\n\n{message.text}{calls}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
