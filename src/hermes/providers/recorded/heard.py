"""Records one response while it is read: pieces, timing and ending."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.errors import ProviderError
from hermes.core.world import Clock
from hermes.providers.http import ResponseSource
from hermes.providers.http11 import ProtocolError
from hermes.providers.recorded.frames import Ending, RecordedError

_KEPT_HEADERS = frozenset(("content-type", "content-encoding", "retry-after", "retry-after-ms"))


class ResponseRecord:
    """The recorded part of a response."""

    def __init__(self, clock: Clock) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.times: list[int] = []
        self.ending: Ending = "left"
        self.fault: RecordedError | None = None
        self._clock = clock
        self._newest = clock.monotonic()

    def start(self, incoming: ResponseSource) -> ResponseSource:
        self.status, self.headers = incoming.status, kept_headers(incoming.headers)
        self.tick()
        return RecordedResponse(incoming, self)

    def record_error(self, error: ProviderError) -> None:
        self.fault = RecordedError(
            message=str(error),
            reason=error.reason,
            retryable=error.retryable,
            unsent=error.unsent,
        )

    def tick(self) -> None:
        now = self._clock.monotonic()
        self.times.append(round((now - self._newest) * 1000))
        self._newest = now


class RecordedResponse:
    """Wraps a response and records what is read."""

    def __init__(self, inner: ResponseSource, heard: ResponseRecord) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._heard = heard

    @property
    def reusable(self) -> bool:
        return self._inner.reusable

    async def read(self, seconds: float) -> bytes:
        try:
            piece = await self._inner.read(seconds)
        except (OSError, ProtocolError) as error:
            self._heard.ending = _ending(error)
            raise
        if piece:
            self._heard.pieces.append(piece)
            self._heard.tick()
        else:
            self._heard.ending = "whole"
        return piece


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that decide how a response is parsed and when the next request is made."""
    return {
        name: value
        for name, value in headers.items()
        if name in _KEPT_HEADERS or "ratelimit" in name
    }


def _ending(error: Exception) -> Ending:
    match error:
        case TimeoutError():
            return "timeout"
        case ProtocolError():
            return "protocol"
        case ConnectionError():
            return "connection"
        case _:
            return "network"
