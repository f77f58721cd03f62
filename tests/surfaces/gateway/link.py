"""A line between a program and a server that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Link:
    """Forwards connections to a port. While it is cut, nobody gets through."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def cut(self) -> None:
        """End all connections and accept none."""
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_cut = False

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Link]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.cut()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        far: asyncio.StreamWriter | None = None
        with suppress(OSError):
            back, far = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers |= {writer, far}
            ways = [asyncio.ensure_future(_copy(*way)) for way in ((reader, far), (back, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        for each in filter(None, (writer, far)):
            self._writers.discard(each)
            each.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
