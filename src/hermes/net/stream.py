"""A byte stream over one asyncio connection, with buffered reads and a shared timer.

asyncio streams create a timer and a deadline for every read, which made up a tenth of the cost of
forwarding a text delta.
"""

from __future__ import annotations

import asyncio
import math
import ssl

# Reading pauses when this much is buffered.
MAX_BUFFERED = 512 * 1024


class ByteStream(asyncio.Protocol):
    """A byte stream for one reader and one writer at a time. A read that timed out can be repeated;
    no data is lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._buffer: list[bytes] = []
        self._size = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._reading: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._write_paused = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def is_idle(self) -> bool:
        """Open, with no unread data."""
        return not (self._ended or self._buffer or self.transport.is_closing())

    async def read(self, seconds: float) -> bytes:
        """Return the available data, b"" at the end. Raise TimeoutError after `seconds`, or
        OSError."""
        if not self._buffer and not self._ended:
            self._reading = self._loop.create_future()
            self._set_deadline(self._loop.time() + seconds)
            try:
                await self._reading
            finally:
                self._reading = None
        if not self._buffer:
            if self._error is not None:
                raise self._error
            return b""
        data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
        self._buffer.clear()
        self._size = 0
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def write(self, data: bytes, seconds: float) -> None:
        """Return when the buffer has space again. Raise TimeoutError, OSError."""
        if self._ended:
            raise self._error or ConnectionResetError("the connection is closed")
        self.transport.write(data)
        if self._write_paused:
            self._writing = self._loop.create_future()
            try:
                async with asyncio.timeout(seconds):
                    await self._writing
            finally:
                self._writing = None

    async def start_tls(self, trust: ssl.SSLContext, host: str) -> None:
        """Upgrade the connection to TLS."""
        secured = await self._loop.start_tls(self.transport, self, trust, server_hostname=host)
        assert secured is not None
        self._transport = secured

    def close(self) -> None:
        self._set_deadline(math.inf)
        self.transport.close()

    def abort(self) -> None:
        self._set_deadline(math.inf)
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer.append(data)
        self._size += len(data)
        if self._size > MAX_BUFFERED and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        _wake(self._reading)

    def eof_received(self) -> None:
        self._ended = True
        _wake(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._set_deadline(math.inf)
        _wake(self._reading)
        if self._writing is not None and not self._writing.done():
            self._writing.set_exception(exc or ConnectionResetError("the connection is closed"))

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        _wake(self._writing)

    def _set_deadline(self, due: float) -> None:
        """Set the deadline of the current read. A timer that fires too early is rescheduled then:
        most reads end long before."""
        self._deadline = due
        if self._timer is not None and (due < self._timer.when() or due == math.inf):
            self._timer.cancel()
            self._timer = None
        if self._timer is None and due != math.inf:
            self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._reading is None or self._reading.done():
            return
        if self._loop.time() < self._deadline:
            self._set_deadline(self._deadline)
        else:
            self._reading.set_exception(TimeoutError())


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
