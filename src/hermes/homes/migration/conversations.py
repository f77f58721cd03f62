"""Reads the sessions of a Hermes Agent `state.db` as journal import lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode, plain
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import UsageError
from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    Record,
    ReplyAdded,
    SessionEnded,
    SessionOpened,
    Titled,
    ToolFinished,
)
from hermes.core.messages import (
    AssistantMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    user_says,
)
from hermes.journal.body_templates import CURRENT, KINDS
from hermes.journal.export import FORMAT, EventLine, SessionLine, conversation_of
from hermes.journal.import_ import SAFE_ID

Row = Mapping[str, JsonValue]
EMPTY_TEXT = "(nothing)"


def session_lines(path: Path) -> Iterator[bytes]:
    """One export line per session, oldest first. The file is opened read-only; raises UsageError if
    it is not such a database."""
    try:
        with closing(_open_database(path)) as db:
            for row in db.execute("SELECT * FROM sessions ORDER BY started_at, id"):
                yield encode(_line(db, dict(row)))
    except sqlite3.Error as error:
        raise UsageError(f"The sessions in {path} cannot be read ({error}).") from error


def _open_database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db


def _line(db: sqlite3.Connection, session: Row) -> SessionLine:
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    rows: list[Row] = [dict(row) for row in db.execute(query, (session["id"],))]
    visible = [row for row in rows if row.get("active", 1) or row.get("compacted")]
    events_at = list(_events(session, visible))
    original = _text(session["id"])
    name = original if SAFE_ID.fullmatch(original) else f"import_{original.encode().hex()[:32]}"
    records = [
        Record(session_id=name, n=n, turn_id="", at=at, event=event)
        for n, (at, event) in enumerate(events_at, start=1)
    ]
    events = tuple(_event_line(n, at, event) for n, (at, event) in enumerate(events_at, start=1))
    return SessionLine(id=name, format=FORMAT, events=events, messages=conversation_of(records))


def _event_line(n: int, at: float, event: DurableEvent) -> EventLine:
    kind = KINDS[type(event)]
    return EventLine(n=n, at=at, kind=kind, version=CURRENT[kind], body=plain(event))


def _events(session: Row, rows: list[Row]) -> Iterator[tuple[float, DurableEvent]]:
    start = _number(session.get("started_at"))
    source, cwd = _text(session.get("source")) or "import", _text(session.get("cwd"))
    # Resuming uses the default model: the original one may be unknown here.
    yield start, SessionOpened(source=source, cwd=cwd, model="", provider="", system="")
    if title := _text(session.get("title")):
        yield start, Titled(title=title)
    at = start
    for at, event in ForeignConversation(session, rows).events():
        yield at, event
    ended = session.get("ended_at")
    yield max(at, _number(ended) if ended else at), SessionEnded(reason="imported")


class ForeignConversation:
    """The messages of one session. Calls get new ids, as the original ones need not be unique.
    Calls without a result and results without a call are dropped: no model accepts them."""

    def __init__(self, session: Row, rows: list[Row]) -> None:
        self._session = session
        self._rows = rows
        self._names: dict[str, tuple[str, str]] = {}

    def events(self) -> Iterator[tuple[float, DurableEvent]]:
        for index, row in enumerate(self._rows):
            at = _number(row.get("timestamp"))
            match row.get("role"):
                case "user":
                    message = user_says(_content(row) or EMPTY_TEXT)
                    yield at, MessageReceived(message=message, past=True)
                case "assistant":
                    yield at, self._reply(index, row)
                case "tool":
                    if (found := self._names.pop(_text(row.get("tool_call_id")), None)) is not None:
                        yield at, _result(row, *found)

    def _reply(self, index: int, row: Row) -> ReplyAdded:
        answered = self._answered_calls(index)
        calls: list[ToolCall] = []
        self._names.clear()
        for number, raw in enumerate(_calls(row)):
            call_id, name = _text(raw.get("id")), _text(_at(raw, "function", "name"))
            if call_id in answered and name:
                own = f"call_{index}_{number}"
                self._names[call_id] = own, name
                calls.append(ToolCall(id=own, name=name, arguments=_arguments(raw)))
        reasoning = _text(row.get("reasoning")) or _text(row.get("reasoning_content"))
        text = _content(row)
        parts = (
            *((Reasoning(text=reasoning),) if reasoning else ()),
            *((Text(text=text or EMPTY_TEXT),) if text or not calls else ()),
            *calls,
        )
        return ReplyAdded(
            message=AssistantMessage(parts=parts, stop="calls" if calls else "done"),
            usage=Usage(),
            model=_text(self._session.get("model")),
            provider=_text(self._session.get("billing_provider")),
        )

    def _answered_calls(self, index: int) -> set[str]:
        """The ids of the calls with a result before the next message."""
        found = set()
        for row in self._rows[index + 1 :]:
            if row.get("role") != "tool":
                break
            found.add(_text(row.get("tool_call_id")))
        return found


def _result(row: Row, call_id: str, name: str) -> ToolFinished:
    text = _content(row) or EMPTY_TEXT
    # The origin is unknown, so results count as external content.
    result = ToolResult(call_id=call_id, name=name, parts=(Text(text=text),), origin="import")
    return ToolFinished(result=result)


def _content(row: Row) -> str:
    """The text of a message. A message with images is a JSON list after a short prefix."""
    text = _text(row.get("content"))
    start = text.find("[{")
    if 0 <= start <= 40 and '"type"' in text:
        try:
            parts = decode(list[JsonObject], text[start:].encode())
        except DecodeError:
            return text
        return "\n".join(_text(part.get("text")) or "[picture]" for part in parts)
    return text


def _calls(row: Row) -> list[JsonObject]:
    try:
        return decode(list[JsonObject], (_text(row.get("tool_calls")) or "[]").encode())
    except DecodeError:
        return []


def _arguments(raw: JsonObject) -> JsonObject:
    arguments = _at(raw, "function", "arguments")
    if isinstance(arguments, dict):
        return arguments
    try:
        return decode(JsonObject, _text(arguments).encode())
    except DecodeError:
        return {}


def _at(value: JsonValue, *names: str) -> JsonValue:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: JsonValue) -> str:
    return value.encode("utf-8", "reindex").decode() if isinstance(value, str) else ""


def _number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
