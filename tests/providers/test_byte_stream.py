"""A connection keeps what comes until it is read, and is waited for so long only."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes.net.stream import MAX_BUFFERED, ByteStream

LONG = 60.0


class Other:
    """The other end of a line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Gone without a word."""
        found: socket.socket = self.writer.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.writer.transport.abort()


@asynccontextmanager
async def joined() -> AsyncIterator[tuple[ByteStream, Other]]:
    came: asyncio.Future[Other] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda r, w: came.set_result(Other(r, w)), "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    port = server.sockets[0].getsockname()[1]
    _, line = await loop.create_connection(lambda: ByteStream(loop), "127.0.0.1", port)
    other = await came
    try:
        yield line, other
    finally:
        line.abort()
        other.writer.transport.abort()
        server.close()
        await server.wait_closed()


async def until_it_speaks(line: ByteStream) -> None:
    for _ in range(10_000):
        if not line.is_idle:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("nothing came")


async def all_of(line: ByteStream, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = await line.read(LONG)
        assert piece
        found += piece
    return found


async def test_a_wait_that_was_too_long_can_go_on() -> None:
    async with joined() as (line, other):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await line.read(0.01)
        await other.say(b"late")
        assert await line.read(LONG) == b"late"


async def test_each_wait_has_its_own_length() -> None:
    """Shorter ones than before, longer ones, and one without an end."""
    async with joined() as (line, other):
        await other.say(b"a")
        assert await line.read(LONG) == b"a"
        with pytest.raises(TimeoutError):
            await line.read(0.01)
        for seconds in (0.02, LONG, float("inf")):
            asyncio.get_running_loop().call_later(0.05, other.writer.write, b"b")
            try:
                assert await line.read(seconds) == b"b"
            except TimeoutError:
                assert seconds == 0.02
                assert await line.read(LONG) == b"b"


async def test_a_wait_that_is_given_up_loses_nothing() -> None:
    async with joined() as (line, other):
        waiting = asyncio.ensure_future(line.read(LONG))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        await other.say(b"all the same")
        assert await line.read(LONG) == b"all the same"


async def test_a_sender_that_is_too_fast_waits() -> None:
    size = 16 * 1024 * 1024
    async with joined() as (line, other):
        sending = asyncio.ensure_future(other.say(b"x" * size))
        first = await line.read(LONG)
        for _ in range(50):
            await asyncio.sleep(0.002)
        assert not sending.done()
        second = await line.read(LONG)
        assert len(second) < 2 * MAX_BUFFERED
        rest = await all_of(line, size - len(first) - len(second))
        assert len(first) + len(second) + len(rest) == size
        await sending


async def test_the_end_comes_after_what_was_said_before_it() -> None:
    async with joined() as (line, other):
        await other.say(b"last words")
        other.writer.close()
        await other.writer.wait_closed()
        await until_it_speaks(line)
        assert await line.read(LONG) == b"last words"
        assert await line.read(LONG) == b""
        with pytest.raises(OSError):
            for _ in range(100):
                await line.write(b"hello?", LONG)
                await asyncio.sleep(0.01)


async def test_a_reader_hears_that_the_other_end_is_gone() -> None:
    async with joined() as (line, other):
        waiting = asyncio.ensure_future(line.read(LONG))
        await asyncio.sleep(0.01)
        other.reset()
        with pytest.raises(ConnectionError):
            await waiting


async def test_a_writer_does_not_wait_for_ever() -> None:
    async with joined() as (line, other):
        with pytest.raises(TimeoutError):
            await line.write(b"x" * 64 * 1024 * 1024, 0.05)
        writing = asyncio.ensure_future(line.write(b"more", LONG))
        await asyncio.sleep(0.01)
        other.reset()
        with pytest.raises(ConnectionError):
            await writing


async def test_a_line_is_quiet_until_something_comes() -> None:
    async with joined() as (line, other):
        assert line.is_idle
        await other.say(b"!")
        await until_it_speaks(line)
        assert await line.read(LONG) == b"!"
        assert line.is_idle
        line.close()
        assert not line.is_idle
