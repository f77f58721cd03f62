"""Coalesces text fragments that arrived in one read into one delta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hermes.core.errors import ProviderError
from hermes.core.prompt import Delta, ReasoningDelta, TextDelta
from hermes.providers.sse import SseEvent

if TYPE_CHECKING:
    from hermes.providers.wire.format import ReplyReader

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
        words = reader.words(event)
        if words is not None:
            said.append(words)
            size += len(words)
        if said and (words is None or size >= MAX_DELTA_CHARS):
            yield from reader.draft.add_text("".join(said))
            said, size = [], 0
        if words is None:
            yield from reader.feed(event)
    if said:
        yield from reader.draft.add_text("".join(said))
