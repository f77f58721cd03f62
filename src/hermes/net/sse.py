"""Parses server-sent events, for any line ends and any split of the bytes."""

from __future__ import annotations

from typing import NamedTuple

from hermes.core.errors import ProviderError

MAX_EVENT_BYTES = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    name: str
    data: bytes


class SseParser:
    """Takes chunks, returns complete events. Comments (keep-alives) and unused fields are dropped.
    An event above the size limit is an error."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max = max_event_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._return = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        self._buffer += self._normalise(chunk)
        if not self._begun:
            self._drop_bom()
        events: list[SseEvent] = []
        end = self._buffer.rfind(b"\n\n", max(0, self._searched - 1))
        if end >= 0:
            whole = bytes(self._buffer[:end])
            del self._buffer[: end + 2]
            events = [event for block in whole.split(b"\n\n") if (event := _event(block))]
        self._searched = len(self._buffer)
        if self._searched > self._max:
            raise ProviderError(
                f"The server sent one event of more than {self._max} bytes.",
                reason="unknown",
                status=200,
                retryable=True,
            )
        return events

    def finish(self) -> list[SseEvent]:
        """Return the last event of a server that omits the empty line after it."""
        block = bytes(self._buffer).strip(b"\n")
        self._buffer.clear()
        event = _event(block)
        return [event] if event else []

    def _normalise(self, chunk: bytes) -> bytes:
        """Return the chunk with LF line ends. A CR at its end waits, because its LF may be in the
        next chunk."""
        if not self._return and b"\r" not in chunk:
            return chunk
        text = (b"\r" if self._return else b"") + chunk
        self._return = text.endswith(b"\r")
        if self._return:
            text = text[:-1]
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _drop_bom(self) -> None:
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer):
            return
        self._begun = True
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]


def _event(block: bytes) -> SseEvent | None:
    if block.startswith(b"data: ") and b"\n" not in block:
        # The common case.
        return SseEvent("", block[6:])
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return SseEvent(name, b"\n".join(data)) if data else None
