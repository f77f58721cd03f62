"""The HTTP/1.1 parser against h11: same status, headers and body for every split of the bytes."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

import h11
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.net.http11 import ConnectionTarget, HttpConnection, ProtocolError
from hermes.net.stream import ByteStream

ADDRESS = ConnectionTarget(host="h", port=80, secure=False)
STATUSES = (200, 201, 204, 206, 301, 304, 400, 404, 418, 429, 500, 503, 599)
_NAMES = st.text("abcXYZ019-_!#$%&'*+.^`|~", min_size=1, max_size=12)
_VALUES = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_categories=["Cc"]), max_size=20
)
FRAMING = ("content-length", "transfer-encoding", "connection")


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Pieces:
    """The reading half of a byte stream: one piece per read, then the end."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]

    async def read(self, seconds: float) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def read_ours(pieces: list[bytes]) -> Response:
    async def run() -> Response:
        connection = HttpConnection(cast(ByteStream, Pieces(pieces)), ADDRESS)
        exchange = await connection.head(1.0)
        body = b""
        while piece := await exchange.read(1.0):
            body += piece
        # h11 gives this one in lower case.
        coding = exchange.headers.get("transfer-encoding", "").lower()
        headers = exchange.headers | ({"transfer-encoding": coding} if coding else {})
        return Response(exchange.status, headers, body)

    return asyncio.run(run())


def read_h11(data: bytes) -> Response:
    """Raises h11.RemoteProtocolError."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "h")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    head: h11.Response | None = None
    body = b""
    while True:
        match event := connection.next_event():
            case h11.InformationalResponse():
                continue
            case h11.Response():
                head = event
            case h11.Data():
                body += event.data
            case h11.EndOfMessage():
                break
            case _ if event is h11.NEED_DATA:
                connection.receive_data(b"")
            case _:
                raise h11.RemoteProtocolError("ended early")
    assert head is not None
    headers: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Response(head.status_code, headers, body)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A valid response with one of the three kinds of framing."""
    status = draw(st.sampled_from(STATUSES))
    extra = draw(st.lists(st.tuples(_NAMES, _VALUES), max_size=5))
    head = [(name, value.strip()) for name, value in extra if name.lower() not in FRAMING]
    if draw(st.booleans()):
        head.append(("Connection", draw(st.sampled_from(("close", "Keep-Alive")))))
    body = draw(st.binary(max_size=400)) if status not in (204, 304) else b""
    kind = draw(st.sampled_from(("length", "chunked", "end")))
    if kind == "length" and status != 204:
        head.append(("Content-Length", str(len(body))))
    elif kind == "chunked" and status not in (204, 304):
        head.append(("Transfer-Encoding", draw(st.sampled_from(("chunked", "Chunked")))))
        body = _chunked(draw, body)
    lines = [f"HTTP/1.1 {status} {draw(st.sampled_from(('OK', '', 'Not so')))}"]
    lines += [f"{name}:{draw(st.sampled_from(('', ' ', '  ')))}{value}" for name, value in head]
    interim = draw(st.sampled_from((b"", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")))
    return interim + "\r\n".join((*lines, "", "")).encode("latin-1") + body


def _chunked(draw: st.DrawFn, body: bytes) -> bytes:
    made = b""
    while body:
        size = draw(st.integers(1, len(body)))
        extension = draw(st.sampled_from((b"", b";x=1")))
        form = draw(st.sampled_from((b"%x", b"%X", b"0%x")))
        made += form % size + extension + b"\r\n" + body[:size] + b"\r\n"
        body = body[size:]
    trailer = draw(st.sampled_from((b"", b"x-sum: 1\r\n")))
    return made + b"0\r\n" + trailer + b"\r\n"


@settings(max_examples=300, deadline=None)
@given(data=responses(), cuts=st.lists(st.integers(0, 1 << 16), max_size=12))
def test_a_valid_response_is_read_as_h11_reads_it(data: bytes, cuts: list[int]) -> None:
    assert read_ours(split(data, cuts)) == read_h11(data)


@settings(max_examples=60, deadline=None)
@given(data=responses())
def test_a_response_may_come_byte_by_byte(data: bytes) -> None:
    assert read_ours([data[n : n + 1] for n in range(len(data))]) == read_h11(data)


@settings(max_examples=400, deadline=None)
@given(
    data=responses(),
    at=st.integers(0, 1 << 16),
    drop=st.integers(0, 3),
    put=st.binary(max_size=3) | st.sampled_from((b"\r\n", b" ", b":", b"0", b"\n", b",")),
    cuts=st.lists(st.integers(0, 1 << 16), max_size=6),
)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 0, 0, b"", [])
@example(b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", 0, 0, b"", [])
@example(
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 0, 0, b"", []
)
@example(b"HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 0\r\n\r\n", 0, 0, b"", [])
def test_damage_is_an_error_or_read_as_h11_reads_it(
    data: bytes, at: int, drop: int, put: bytes, cuts: list[int]
) -> None:
    """No other exception escapes, and no split changes the outcome."""
    at %= len(data) + 1
    data = data[:at] + put + data[at + drop :]
    ours = _outcome(split(data, cuts))
    assert ours == _outcome([data])
    try:
        theirs = read_h11(data)
    except h11.RemoteProtocolError:
        return
    assert ours is None or ours == theirs


def _outcome(pieces: list[bytes]) -> Response | None:
    try:
        return read_ours(pieces)
    except ProtocolError:
        return None
