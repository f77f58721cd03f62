"""Reads which skills were loaded in which turns, and how those turns ended."""

from __future__ import annotations

import sqlite3

_LOADED = (
    "SELECT session, turn_id, body FROM events"
    " WHERE kind = 'tool_finished' AND instr(body, 'skill_view') > 0"
)
_ENDED = "SELECT turn_id, body FROM events WHERE session = ? AND kind = 'turn_ended'"

Text = bytes | str


def skill_results(db: sqlite3.Connection) -> list[tuple[Text, Text]]:
    """Each result of `skill_view` with the end of its turn, both encoded."""
    loaded = db.execute(_LOADED).fetchall()
    ends: dict[tuple[int, str], Text] = {}
    for session in {row[0] for row in loaded}:
        ends |= {(session, turn): body for turn, body in db.execute(_ENDED, (session,))}
    return [
        (body, ends[session, turn]) for session, turn, body in loaded if (session, turn) in ends
    ]
