"""The searchable part of an event: role and text."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value

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
    """The text of an event: messages and the arguments of tool calls, without reasoning. Empty for
    a body that cannot be read."""
    if row.kind not in ROLES:
        return ""
    try:
        body = decode(_Body, row.body)
    except DecodeError:
        return ""
    said = body.result if row.kind == "tool_finished" else body.message
    return "\n".join(filter(None, map(_words, said.parts)))[:LONGEST_TEXT]


def _words(part: _Part) -> str:
    if part.type == "text":
        return part.text
    if part.type == "tool_call":
        return " ".join([part.name, *_leaves(part.arguments)])
    return ""


def _leaves(value: Any) -> list[str]:
    match value:
        case dict():
            return [leaf for item in value.values() for leaf in _leaves(item)]
        case list():
            return [leaf for item in value for leaf in _leaves(item)]
        case None | bool():
            return []
        case _:
            return [str(value)]
