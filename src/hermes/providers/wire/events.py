"""Parses JSON and events from servers without trusting their shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ProviderError
from hermes.core.prompt import Delta, ReasoningDelta, TextDelta
from hermes.net.sse import SseEvent

if TYPE_CHECKING:
    from hermes.providers.wire.format import ReplyReader

_decode = msgspec.json.Decoder().decode
MISMATCH = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What a decoder raises for data of another shape."""


def event_objects(event: SseEvent) -> list[JsonObject]:
    """Return the objects of an event: one, or one per line from servers that omit the empty line
    between events. Empty for anything else ("[DONE]", a bare word)."""
    data = event.data.strip()
    if not data.startswith(b"{"):
        return []
    value = parse_json(data)
    if value is not None:
        return [value] if isinstance(value, dict) else []
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
    """Parse JSON; None if that fails. The slow path also accepts half a surrogate pair (the other
    half may be in the next event) and raw control characters."""
    try:
        return _decode(data)
    except MISMATCH:
        pass
    # Imported on demand: nearly all servers send valid JSON.
    import json

    try:
        return json.loads(data.decode("utf-8-sig"), strict=False)
    except (ValueError, RecursionError):
        return None


def text_of(value: JsonValue) -> str:
    """Return a string, or the text of a list of parts; "" for anything else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return "".join(text_of(part.get("text")) for part in objects_of(value))


def object_of(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects_of(value: JsonValue) -> list[JsonObject]:
    return [item for item in list_of(value) if isinstance(item, dict)]


def list_of(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def count_of(value: JsonValue) -> int:
    """Return a token count; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, int(value)) if value == value and abs(value) < 1e15 else 0


# Consumers yield to other tasks between deltas, so one delta must not get too large.
MAX_DELTA_CHARS = 2_000


def coalesce(reader: ReplyReader, events: Iterable[SseEvent]) -> Iterator[Delta]:
    """Yield the deltas of events from one read. If an event fails, yield the deltas before it
    first."""
    kind: type[TextDelta | ReasoningDelta] = TextDelta
    pieces: list[str] = []
    size = 0
    failed: ProviderError | None = None
    try:
        for delta in _deltas(reader, events):
            if pieces and (type(delta) is not kind or size >= MAX_DELTA_CHARS):
                yield kind(text="".join(pieces))
                pieces, size = [], 0
            if isinstance(delta, TextDelta | ReasoningDelta):
                kind = type(delta)
                pieces.append(delta.text)
                size += len(delta.text)
            else:
                yield delta
    except ProviderError as error:
        failed = error
    if pieces:
        yield kind(text="".join(pieces))
    if failed is not None:
        raise failed


def _deltas(reader: ReplyReader, events: Iterable[SseEvent]) -> Iterator[Delta]:
    """Join consecutive text-only events."""
    pending: list[str] = []
    size = 0
    for event in events:
        text = reader.plain_text(event)
        if text is not None:
            pending.append(text)
            size += len(text)
        if pending and (text is None or size >= MAX_DELTA_CHARS):
            yield from reader.builder.add_text("".join(pending))
            pending, size = [], 0
        if text is None:
            yield from reader.feed(event)
            if reader.closed:
                # What follows the announced end does not belong to the reply.
                return
    if pending:
        yield from reader.builder.add_text("".join(pending))
