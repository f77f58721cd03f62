"""Parses JSON and events from servers without trusting their shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ProviderError
from hermes.core.prompt import Delta, ReasoningDelta, TextDelta
from hermes.net.sse import SseEvent

if TYPE_CHECKING:
    from hermes.providers.wire.format import ReplyReader

_decode = msgspec.json.Decoder().decode
_MISMATCH = (msgspec.DecodeError, UnicodeError, RecursionError)


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
    except _MISMATCH:
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
    return [item for item in list_of(value) if isinstance(item, dict)]


def list_of(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def count_of(value: JsonValue) -> int:
    """A token count; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, int(value)) if value == value and abs(value) < 1e15 else 0


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: str | None = None
    content: str | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    finish_reason: None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


class _Block(msgspec.Struct, gc=False):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    delta: _Block


class _OutputDelta(msgspec.Struct, gc=False):
    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int


_chunk = msgspec.json.Decoder(_Chunk).decode
_block = msgspec.json.Decoder(_BlockDelta).decode
_output = msgspec.json.Decoder(_OutputDelta).decode


def chat_text(data: bytes) -> str | None:
    """The text of a chunk with nothing else in it; None for any other event."""
    try:
        return _chunk(data).choices[0].delta.content or ""
    except _MISMATCH:
        return None


def messages_text(data: bytes) -> str | None:
    """The text of a text delta; None for any other event."""
    try:
        return _block(data).delta.text
    except _MISMATCH:
        return None


def responses_text(data: bytes) -> tuple[str, str] | None:
    """The text of a text delta and its item number; None for any other event."""
    try:
        found = _output(data)
    except _MISMATCH:
        return None
    return found.delta, str(found.output_index)


# Consumers yield to other tasks between deltas, so one delta must not get too large.
MAX_DELTA_CHARS = 2_000


def coalesce(reader: ReplyReader, events: Iterable[SseEvent]) -> Iterator[Delta]:
    """The deltas of events from one read. Deltas before a failure are emitted before it is
    raised."""
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
    """Joins consecutive text-only events."""
    said: list[str] = []
    size = 0
    for event in events:
        words = reader.plain_text(event)
        if words is not None:
            said.append(words)
            size += len(words)
        if said and (words is None or size >= MAX_DELTA_CHARS):
            yield from reader.builder.add_text("".join(said))
            said, size = [], 0
        if words is None:
            yield from reader.feed(event)
    if said:
        yield from reader.builder.add_text("".join(said))
