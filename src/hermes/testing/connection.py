"""One HTTP/1.1 connection of the scripted server: requests in, bytes out."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import NamedTuple

MAX_HEAD_BYTES = 65_536


class RawRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes = b""


class ServerConnection(asyncio.Protocol):
    """A connection that passes on one request at a time; the next waits until `done` is called. A
    client that disconnects cancels the task that answers it. `connections` holds all open
    connections."""

    def __init__(
        self,
        serve: Callable[[RawRequest, ServerConnection], None],
        connections: set[ServerConnection],
    ) -> None:
        self._serve = serve
        self._connections = connections
        self._buffer = bytearray()
        self._head: RawRequest | None = None
        self._busy = False
        self._reading = False
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.gone = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._writable.set()
        if self._task is not None:
            self._task.cancel()
        self._connections.discard(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    # used by the server

    def run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Answer in a task that is cancelled when the client disconnects."""
        self._task = asyncio.get_running_loop().create_task(work)
        return self._task

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self.gone:
            self._transport.write(data)

    async def drain(self) -> None:
        await self._writable.wait()

    def done(self, *, keep: bool) -> None:
        """The response is complete: take the next request, or close."""
        self._task = None
        self._busy = False
        if keep and not self.gone:
            self._next()
        else:
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now and discard unsent data."""
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Close with a TCP reset."""
        if self._transport is not None:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    # parsing

    def _next(self) -> None:
        if self._reading:
            return
        self._reading = True
        while not self._busy and not self.gone and (incoming := self._take()):
            self._busy = True
            self._serve(incoming, self)
        self._reading = False

    def _take(self) -> RawRequest | None:
        if self._head is None and not self._take_head():
            return None
        assert self._head is not None
        headers = self._head.headers
        if "chunked" in headers.get("transfer-encoding", "").lower():
            raw = self._take_chunked()
            if raw is None:
                return None
        else:
            size = int(headers.get("content-length") or 0)
            if len(self._buffer) < size:
                return None
            raw = bytes(self._buffer[:size])
            del self._buffer[:size]
        request, self._head = self._head._replace(raw=raw), None
        return request

    def _take_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                self.close()
            return False
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = lines[0].split(" ")
        if len(parts) != 3:
            self.close()
            return False
        pairs = (line.partition(":") for line in lines[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        self._head = RawRequest(parts[0], parts[1], headers)
        if headers.get("expect", "").lower() == "100-continue":
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _take_chunked(self) -> bytes | None:
        parts: list[bytes] = []
        at = 0
        while True:
            line_end = self._buffer.find(b"\r\n", at)
            if line_end < 0:
                return None
            size = int(bytes(self._buffer[at:line_end]).partition(b";")[0], 16)
            at = line_end + 2
            if len(self._buffer) < at + size + 2:
                return None
            parts.append(bytes(self._buffer[at : at + size]))
            at += size + 2
            if size == 0:
                del self._buffer[:at]
                return b"".join(parts)
