"""Events as JSON objects for scripts, each with its position in the session."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.core.events import Record


def event_line(record: Record) -> JsonObject:
    """The event's own fields and `session_id`, `turn_id`, `at`; `n` for those that are stored."""
    line: JsonObject = plain(record.event)
    line["session_id"], line["at"] = record.session_id, record.at
    if record.turn_id:
        line["turn_id"] = record.turn_id
    if record.n:
        line["n"] = record.n
    return line
