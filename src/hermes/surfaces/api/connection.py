"""One client connection: idle connections time out, and writes of one loop iteration are
combined."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 15.0


class Gathering(asyncio.Transport):
    """Combines the writes of one event-loop iteration, such as the response head and its first
    bytes."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner = inner
        self._loop = loop
        self._gathered: list[bytes] = []

    def write(self, data: Any) -> None:
        if not self._gathered:
            self._loop.call_soon(self._send)
        self._gathered.append(bytes(data))

    def close(self) -> None:
        self._send()
        self._inner.close()

    def abort(self) -> None:
        self._gathered.clear()
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered and not self._inner.is_closing():
            self._inner.write(b"".join(gathered))


class Connection(H11Protocol):
    """Closes when the first request head does not arrive in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Gathering(transport, self.loop))
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        if self.cycle is None:
            with suppress(OSError):
                self.transport.close()
