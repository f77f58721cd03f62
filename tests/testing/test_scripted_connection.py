"""One HTTP connection, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.testing.connection import RawRequest, ServerConnection


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True


def connected(
    serve: Callable[[RawRequest, ServerConnection], None],
) -> tuple[ServerConnection, Wire]:
    connection, wire = ServerConnection(serve, set()), Wire()
    connection.connection_made(wire)
    return connection, wire


def as_chunks(body: bytes) -> bytes:
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


@settings(max_examples=60)
@given(
    bodies=st.lists(st.binary(max_size=40), min_size=1, max_size=4),
    chunked=st.booleans(),
    cuts=st.lists(st.integers(0, 600), max_size=12),
)
def test_requests_are_read_however_they_are_split(
    bodies: list[bytes], chunked: bool, cuts: list[int]
) -> None:
    stream = b""
    for body in bodies:
        length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
        stream += b"POST /x HTTP/1.1\r\nHost: h\r\n%b\r\n\r\n" % length
        stream += as_chunks(body) if chunked else body
    got: list[bytes] = []

    async def feed() -> None:
        def serve(incoming: RawRequest, connection: ServerConnection) -> None:
            got.append(incoming.raw)
            connection.done(keep=True)

        connection, _ = connected(serve)
        places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
        for start, end in pairwise(places):
            connection.data_received(stream[start:end])

    asyncio.run(feed())
    assert got == bodies


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    got: list[RawRequest] = []
    connection, wire = connected(lambda incoming, _connection: got.append(incoming))
    connection.data_received(
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    assert (wire.written, got) == (b"HTTP/1.1 100 Continue\r\n\r\n", [])
    connection.data_received(b"ok")
    assert [incoming.raw for incoming in got] == [b"ok"]


@pytest.mark.parametrize("nonsense", [b"hello\r\n\r\n", b"x" * 70_000])
async def test_what_is_not_http_is_closed(nonsense: bytes) -> None:
    got: list[RawRequest] = []
    connection, wire = connected(lambda incoming, _connection: got.append(incoming))
    connection.data_received(nonsense)
    assert (wire.closed, got) == (True, [])
