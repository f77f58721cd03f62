"""Counts tools, messages and skill outcomes in the journal."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Literal, NamedTuple

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value

_LOADED = (
    "SELECT session, turn_id, body FROM events"
    " WHERE kind = 'tool_finished' AND instr(body, 'skill_view') > 0"
)
_USED = (
    "SELECT DISTINCT sessions.id FROM events JOIN sessions ON sessions.session = events.session"
    " WHERE (kind = 'tool_finished' AND instr(body, 'skill_view') > 0 AND instr(body, ?) > 0)"
    " OR (kind = 'message_received' AND instr(body, ?) > 0)"
    # Session ids do not sort by age: clients may choose them, and one second may have several.
    " ORDER BY sessions.session DESC LIMIT ?"
)
_TOTALS = (
    "SELECT session, id, title, preview, source, started_at, last_at, message_count,"
    " tool_call_count, input + output + cache_read + cache_write AS tokens"
    " FROM summaries JOIN sessions USING (session)"
    " WHERE last_at >= ?1 AND (?2 = '' OR source = ?2)"
)
_ENDED = "SELECT turn_id, body FROM events WHERE session = ? AND kind = 'turn_ended'"

Text = bytes | str


def skill_results(db: sqlite3.Connection) -> list[tuple[Text, Text]]:
    """Return each `skill_view` result with the end of its turn, both encoded."""
    loaded = db.execute(_LOADED).fetchall()
    ends: dict[tuple[int, str], Text] = {}
    for session in {row[0] for row in loaded}:
        ends |= {(session, turn): body for turn, body in db.execute(_ENDED, (session,))}
    return [
        (body, ends[session, turn]) for session, turn, body in loaded if (session, turn) in ends
    ]


def sessions_with_skill(db: sqlite3.Connection, skill: str, most: int) -> tuple[str, ...]:
    """Return the ids of sessions that loaded the skill, newest first."""
    values = (f'"{skill}"', f"# Skill {skill}\\n\\n", most)
    return tuple(id for (id,) in db.execute(_USED, values))


class SessionTotals(NamedTuple):
    session: int
    id: str
    title: str
    preview: str
    source: str
    started_at: float
    last_at: float
    messages: int
    tool_calls: int
    tokens: int


def session_totals(db: sqlite3.Connection, since: float, source: str) -> list[SessionTotals]:
    """Return the sessions with records since then, of one source or, with "", of all."""
    return [SessionTotals(*row) for row in db.execute(_TOTALS, (since, source))]


HOUR_SECONDS = 3600

Kind = Literal["tool", "failed", "skill", "said"]

_SINCE = (
    "SELECT session, at, kind, head || rest || tail FROM log JOIN shapes USING (shape)"
    " WHERE at >= ? AND kind IN ('tool_finished', 'message_received')"
)


class SessionCounts(NamedTuple):
    session: int
    hour: int
    kind: Kind
    name: str
    times: int


class _Content(Value):
    """The fields of a message or a result that are counted."""

    origin: str = "user"
    name: str = ""
    failed: bool = False
    details: JsonObject = {}


class _Body(Value):
    message: _Content = _Content()
    result: _Content = _Content()


def usage_counts(db: sqlite3.Connection, since: float) -> list[SessionCounts]:
    """Return how often tools were called and failed, skills loaded and messages sent, by session
    and hour. Reads the whole log: about 0.3 s for a million records."""
    sums: Counter[tuple[int, int, Kind, str]] = Counter()
    for session, at, kind, body in db.execute(_SINCE, (since,)):
        hour = int(at // HOUR_SECONDS)
        try:
            found = decode(_Body, body)
        except DecodeError:
            continue
        if kind == "message_received":
            who = "user" if found.message.origin == "user" else "other"
            sums[session, hour, "said", who] += 1
            continue
        result = found.result
        sums[session, hour, "tool", result.name] += 1
        if result.failed:
            sums[session, hour, "failed", result.name] += 1
        elif result.name == "skill_view" and isinstance(skill := result.details.get("name"), str):
            sums[session, hour, "skill", skill] += 1
    return [SessionCounts(*key, count) for key, count in sums.items()]
