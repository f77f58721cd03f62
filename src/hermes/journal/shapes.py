"""Body templates: the JSON that many bodies have in common at both ends is stored only once.

A body is head + rest + tail of its shape, byte for byte; the view `events` joins them again. Every
record stores the number of its shape, which is its position in `SHAPES` from 1: add at the end,
never move or change one.
"""

from __future__ import annotations

from typing import NamedTuple

from hermes.codec.json import encode
from hermes.core.events import DurableEvent
from hermes.journal.versions import CURRENT, KINDS


class Shape(NamedTuple):
    kind: str
    version: int
    head: bytes
    tail: bytes


class Stored(NamedTuple):
    """An event as it is stored in the log."""

    event: DurableEvent
    kind: str
    version: int
    body: bytes
    shape: int
    rest: str


def _shape(kind: str, more: str = "", tail: str = "}", *, version: int = 1) -> Shape:
    return Shape(kind, version, f'{{"type":"{kind}"{more}'.encode(), tail.encode())


_USER = ',"message":{"type":"user","parts":[{"type":"text","text":"'
_ASSISTANT = ',"message":{"type":"assistant","parts":[{"type":"'

SHAPES: tuple[Shape, ...] = (
    _shape("session_opened"),
    _shape("session_ended"),
    _shape("titled"),
    _shape("model_switched"),
    _shape("message_received"),
    _shape("turn_started"),
    _shape("steered"),
    _shape("model_called"),
    _shape("reply_added"),
    _shape("tool_intended"),
    _shape("tool_started"),
    _shape("tool_finished"),
    _shape("approval_asked"),
    _shape("approval_answered"),
    _shape("question_asked"),
    _shape("question_answered"),
    _shape("rewound"),
    _shape("turn_ended"),
    _shape("session_opened", ',"source":"'),
    _shape("session_ended", ',"reason":"', '"}'),
    _shape("titled", ',"title":"', '"}'),
    _shape("message_received", _USER, '"}'),
    _shape("message_received", _USER, '"}}'),
    _shape("message_received", _USER, '"}]}}'),
    _shape("turn_started", ',"takes":[', "]}"),
    _shape("steered", ',"takes":[', "]}"),
    _shape("model_called", ',"model":"'),
    _shape("reply_added", _ASSISTANT, '"}'),
    _shape("reply_added", _ASSISTANT + 'text","text":"', '"}'),
    _shape(
        "reply_added",
        _ASSISTANT + 'text","text":"',
        '"}]},"usage":{},"model":"","provider":""}',
    ),
    _shape("tool_intended", ',"call_id":"'),
    _shape("tool_started", ',"call_id":"', '"}'),
    _shape("tool_finished", ',"result":{"type":"tool_result","call_id":"'),
    _shape("turn_ended", ',"reason":"'),
    _shape("turn_ended", ',"reason":"done","usage":{}}', ""),
    _shape("message_received", _USER, '"}]},"past":true}'),
    _shape("call_settled"),
    _shape("cap_raised"),
    _shape("call_settled", ',"call":"call_'),
    _shape("effect_decided"),
    _shape("compacted"),
    _shape("overlaid"),
    _shape("erased"),
    _shape("withdrawn"),
    _shape("hook_answered"),
    _shape("tuned"),
    _shape("archived"),
)


def _by_kind() -> dict[tuple[str, int], list[tuple[int, Shape]]]:
    """The shapes of each kind and version; those that save most come first."""
    found: dict[tuple[str, int], list[tuple[int, Shape]]] = {}
    for number, shape in enumerate(SHAPES, start=1):
        found.setdefault((shape.kind, shape.version), []).append((number, shape))
    for shapes in found.values():
        shapes.sort(key=lambda pair: -len(pair[1].head) - len(pair[1].tail))
    return found


_SHAPES_OF = _by_kind()


def stored(event: DurableEvent) -> Stored:
    """An event of the current version, ready for the log."""
    kind = KINDS[type(event)]
    return packed(event, kind, CURRENT[kind], encode(event))


def packed(event: DurableEvent, kind: str, version: int, body: bytes) -> Stored:
    """An event whose body is encoded already, perhaps in an older version."""
    size = len(body)
    for number, (_kind, _version, head, tail) in _SHAPES_OF[kind, version]:
        end = size - len(tail)
        if end >= len(head) and body.startswith(head) and body.endswith(tail):
            return Stored(event, kind, version, body, number, body[len(head) : end].decode())
    raise ValueError(f"a body of {kind} in an unknown encoding")
