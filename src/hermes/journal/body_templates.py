"""Event bodies: versions with their upgrades, and templates for the JSON that many bodies share.

A template saves space: a record stores only the part of its body between the head and the tail of
the template, and the view `events` joins them again, byte for byte. Every record stores the number
of its template (the column `shape`), which is its position in `TEMPLATES` from 1: add at the end,
never move or change one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias, cast, get_args

from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.events import DurableEvent

Upgrade: TypeAlias = Callable[[JsonObject], JsonObject]

# A union can be decoded, although it is not a `type` for the type checker.
EVENT = cast(type[DurableEvent], DurableEvent)

KINDS: Mapping[type, str] = {
    event: cast(str, event.__struct_config__.tag) for event in get_args(DurableEvent)
}

CURRENT: Mapping[str, int] = dict.fromkeys(KINDS.values(), 1)

# (kind, 1) upgrades a body of version 1 to version 2, and so on, one step each.
UPGRADES: Mapping[tuple[str, int], Upgrade] = {}


def is_newer(kind: str, version: int, *, current: Mapping[str, int] = CURRENT) -> bool:
    """Whether a newer Hermes wrote the event: it cannot be interpreted and must not be changed."""
    return version > current.get(kind, 0)


def event_of(
    kind: str,
    version: int,
    body: bytes,
    *,
    current: Mapping[str, int] = CURRENT,
    upgrades: Mapping[tuple[str, int], Upgrade] = UPGRADES,
) -> DurableEvent:
    """Return the event of a stored body; raise DecodeError when the body is damaged."""
    if version == current[kind]:
        return decode(EVENT, body)
    raw = decode(dict, body)
    for step in range(version, current[kind]):
        raw = upgrades[kind, step](raw)
    return convert(EVENT, raw)


def readable_event(kind: str, version: int, body: bytes) -> DurableEvent | None:
    """Return the event of a stored body; None when it is damaged or written by a newer Hermes."""
    if is_newer(kind, version):
        return None
    try:
        return event_of(kind, version, body)
    except DecodeError:
        return None


class BodyTemplate(NamedTuple):
    kind: str
    version: int
    head: bytes
    tail: bytes


class StoredEvent(NamedTuple):
    """An event as it is stored in the log: the number of its template and the rest of its body."""

    event: DurableEvent
    kind: str
    version: int
    body: bytes
    template: int
    rest: str


def _template(kind: str, more: str = "", tail: str = "}", *, version: int = 1) -> BodyTemplate:
    return BodyTemplate(kind, version, f'{{"type":"{kind}"{more}'.encode(), tail.encode())


_USER = ',"message":{"type":"user","parts":[{"type":"text","text":"'
_ASSISTANT = ',"message":{"type":"assistant","parts":[{"type":"'

TEMPLATES: tuple[BodyTemplate, ...] = (
    _template("session_opened"),
    _template("session_ended"),
    _template("titled"),
    _template("model_switched"),
    _template("message_received"),
    _template("turn_started"),
    _template("steered"),
    _template("model_called"),
    _template("reply_added"),
    _template("tool_intended"),
    _template("tool_started"),
    _template("tool_finished"),
    _template("approval_asked"),
    _template("approval_answered"),
    _template("question_asked"),
    _template("question_answered"),
    _template("rewound"),
    _template("turn_ended"),
    _template("session_opened", ',"source":"'),
    _template("session_ended", ',"reason":"', '"}'),
    _template("titled", ',"title":"', '"}'),
    _template("message_received", _USER, '"}'),
    _template("message_received", _USER, '"}}'),
    _template("message_received", _USER, '"}]}}'),
    _template("turn_started", ',"takes":[', "]}"),
    _template("steered", ',"takes":[', "]}"),
    _template("model_called", ',"model":"'),
    _template("reply_added", _ASSISTANT, '"}'),
    _template("reply_added", _ASSISTANT + 'text","text":"', '"}'),
    _template(
        "reply_added",
        _ASSISTANT + 'text","text":"',
        '"}]},"usage":{},"model":"","provider":""}',
    ),
    _template("tool_intended", ',"call_id":"'),
    _template("tool_started", ',"call_id":"', '"}'),
    _template("tool_finished", ',"result":{"type":"tool_result","call_id":"'),
    _template("turn_ended", ',"reason":"'),
    _template("turn_ended", ',"reason":"done","usage":{}}', ""),
    _template("message_received", _USER, '"}]},"past":true}'),
    _template("call_settled"),
    _template("cap_raised"),
    _template("call_settled", ',"call":"call_'),
    _template("effect_decided"),
    _template("compacted"),
    _template("overlaid"),
    _template("erased"),
    _template("withdrawn"),
    _template("hook_answered"),
    _template("tuned"),
    _template("archived"),
    _template("inner_call_intended"),
    _template("inner_call_finished"),
    _template("goal_changed"),
)


def _by_kind() -> dict[tuple[str, int], list[tuple[int, BodyTemplate]]]:
    """Return the templates of each kind and version; those that save most come first."""
    found: dict[tuple[str, int], list[tuple[int, BodyTemplate]]] = {}
    for number, template in enumerate(TEMPLATES, start=1):
        found.setdefault((template.kind, template.version), []).append((number, template))
    for templates in found.values():
        templates.sort(key=lambda pair: -len(pair[1].head) - len(pair[1].tail))
    return found


_TEMPLATES_OF = _by_kind()


def encode_event(event: DurableEvent) -> StoredEvent:
    """Encode an event of the current version for the log."""
    kind = KINDS[type(event)]
    return pack_body(event, kind, CURRENT[kind], encode(event))


def pack_body(event: DurableEvent, kind: str, version: int, body: bytes) -> StoredEvent:
    """Pack an event whose body is encoded already, perhaps in an older version."""
    size = len(body)
    for number, (_kind, _version, head, tail) in _TEMPLATES_OF[kind, version]:
        end = size - len(tail)
        if end >= len(head) and body.startswith(head) and body.endswith(tail):
            return StoredEvent(event, kind, version, body, number, body[len(head) : end].decode())
    raise ValueError(f"a body of {kind} in an unknown encoding")
