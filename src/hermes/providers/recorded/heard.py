"""Records one response while it is read: pieces, timing and ending."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.errors import ProviderError
from hermes.core.world import Clock
from hermes.providers.http import Incoming
from hermes.providers.http11 import ProtocolError
from hermes.providers.recorded.frames import Ending, Fault

_KEPT_HEADERS = frozenset(("content-type", "content-encoding", "retry-after", "retry-after-ms"))


class Heard:
    """The recorded part of a response."""

    def __init__(self, clock: Clock) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.times: list[int] = []
        self.ending: Ending = "left"
        self.fault: Fault | None = None
        self._clock = clock
        self._newest = clock.monotonic()

    def begins(self, incoming: Incoming) -> Incoming:
        self.status, self.headers = incoming.status, kept_headers(incoming.headers)
        self.tick()
        return Listening(incoming, self)

    def fails(self, error: ProviderError) -> None:
        self.fault = Fault(
            message=str(error),
            reason=error.reason,
            retryable=error.retryable,
            unsent=error.unsent,
        )

    def tick(self) -> None:
        now = self._clock.monotonic()
        self.times.append(round((now - self._newest) * 1000))
        self._newest = now


class Listening:
    """Wraps a response and records what is read."""

    def __init__(self, inner: Incoming, heard: Heard) -> None:
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
