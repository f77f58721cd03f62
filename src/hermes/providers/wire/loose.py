"""Reads JSON from servers without trusting its shape."""

from __future__ import annotations

import json

import msgspec

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ProviderError
from hermes.providers.sse import SseEvent

_decode = msgspec.json.Decoder().decode


def event_objects(event: SseEvent) -> list[JsonObject]:
    """The objects of an event: one, or one per line from servers that omit the empty line between
    events. Empty for anything else ("[DONE]", a bare word)."""
    data = event.data.strip()
    if not data.startswith(b"{"):
        return []
    found = parse_json(data)
    if found is not None:
        return [found] if isinstance(found, dict) else []
    lines = [line for line in data.split(b"\n") if line.strip().startswith(b"{")]
    several = [parse_json(line) for line in lines] if len(lines) > 1 else [None]
    if any(item is None for item in several):
        raise ProviderError(
            "The server sent an event that cannot be parsed; try again.",
            reason="cut",
            retryable=True,
        )
    return [item for item in several if isinstance(item, dict)]


def parse_json(data: bytes) -> JsonValue:
    """The JSON value, or None. The slow path also accepts half a surrogate pair (the other half may
    be in the next event) and raw control characters."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8-sig"), strict=False)
    except (ValueError, RecursionError):
        return None


def text_of(value: JsonValue) -> str:
    """A string, or the text of a list of parts; "" for anything else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return "".join(text_of(part.get("text")) for part in objects_of(value))


def object_of(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects_of(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count_of(value: JsonValue) -> int:
    """A token count; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, int(value)) if value == value and abs(value) < 1e15 else 0
