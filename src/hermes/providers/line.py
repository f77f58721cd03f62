"""The bytes of one connection: kept as they come until they are read, and waited for so long only.

With the streams of asyncio each read has a timer and a deadline of its own, which took a tenth of
what it costs to pass a word of an answer on.
"""

from __future__ import annotations

import asyncio
import math
import ssl

# A sender that is so far ahead of the reader waits.
MOST_KEPT = 512 * 1024


class Line(asyncio.Protocol):
    """One reader and one writer at a time. A wait that has timed out can be made again: nothing
    that comes meanwhile is lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._kept: list[bytes] = []
        self._size = 0
        self._paused = False
        self._over = False
        self._error: Exception | None = None
        self._reading: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._stuck = False
        self._due = math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def is_quiet(self) -> bool:
        """Open, and nothing has come that was not read."""
        return not (self._over or self._kept or self.transport.is_closing())

    async def read(self, seconds: float) -> bytes:
        """What has come, b"" at the end; TimeoutError after so many seconds, OSError."""
        if not self._kept and not self._over:
            self._reading = self._loop.create_future()
            self._expect(self._loop.time() + seconds)
            try:
                await self._reading
            finally:
                self._reading = None
        if not self._kept:
            if self._error is not None:
                raise self._error
            return b""
        data = self._kept[0] if len(self._kept) == 1 else b"".join(self._kept)
        self._kept.clear()
        self._size = 0
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def write(self, data: bytes, seconds: float) -> None:
        """Returns when there is room for more; TimeoutError, OSError."""
        if self._over:
            raise self._error or ConnectionResetError("the connection is closed")
        self.transport.write(data)
        if self._stuck:
            self._writing = self._loop.create_future()
            try:
                async with asyncio.timeout(seconds):
                    await self._writing
            finally:
                self._writing = None

    async def secure(self, trust: ssl.SSLContext, host: str) -> None:
        """Speak TLS from here on."""
        secured = await self._loop.start_tls(self.transport, self, trust, server_hostname=host)
        assert secured is not None
        self._transport = secured

    def close(self) -> None:
        self._expect(math.inf)
        self.transport.close()

    def abort(self) -> None:
        self._expect(math.inf)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._kept.append(data)
        self._size += len(data)
        if self._size > MOST_KEPT and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        _wake(self._reading)

    def eof_received(self) -> None:
        self._over = True
        _wake(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._error = exc
        self._expect(math.inf)
        _wake(self._reading)
        if self._writing is not None and not self._writing.done():
            self._writing.set_exception(exc or ConnectionResetError("the connection is closed"))

    def pause_writing(self) -> None:
        self._stuck = True

    def resume_writing(self) -> None:
        self._stuck = False
        _wake(self._writing)

    def _expect(self, due: float) -> None:
        """From now on this is when the wait for bytes is over. A timer that rings too early is set
        anew then: most waits end long before it rings."""
        self._due = due
        if self._timer is not None and (due < self._timer.when() or due == math.inf):
            self._timer.cancel()
            self._timer = None
        if self._timer is None and due != math.inf:
            self._timer = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._reading is None or self._reading.done():
            return
        if self._loop.time() < self._due:
            self._expect(self._due)
        else:
            self._reading.set_exception(TimeoutError())


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
