"""Pieces of a text that came in one read are passed on as one piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.core.errors import ProviderError
from hermes.core.prompt import Delta, ReasoningDelta, TextDelta
from hermes.providers.sse import SseEvent
from hermes.providers.wire.format import Reader

# Whoever passes deltas on lets others work between them; a long read must leave room for that.
MOST_PIECES = 32


def read_together(reader: Reader, events: Iterable[SseEvent]) -> Iterator[Delta]:
    """The deltas of events that came together. What came before a failure is told before it."""
    kind: type[TextDelta | ReasoningDelta] = TextDelta
    pieces: list[str] = []
    failed: ProviderError | None = None
    try:
        for event in events:
            for delta in reader.feed(event):
                if pieces and (type(delta) is not kind or len(pieces) == MOST_PIECES):
                    yield kind(text="".join(pieces))
                    pieces = []
                if isinstance(delta, TextDelta | ReasoningDelta):
                    kind = type(delta)
                    pieces.append(delta.text)
                else:
                    yield delta
    except ProviderError as error:
        failed = error
    if pieces:
        yield kind(text="".join(pieces))
    if failed is not None:
        raise failed
