"""One client connection that closes when no request arrives in time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 15.0


class HttpConnection(H11Protocol):
    """Closes when the first request head does not arrive in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        if self.cycle is None:
            with suppress(OSError):
                self.transport.close()
