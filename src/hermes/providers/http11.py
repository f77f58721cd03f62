"""HTTP/1.1 on asyncio: one connection, one exchange at a time, bodies as they come.

A library for this costs 60 ms of CPU to load and more than a millisecond for each request, which
is most of what an answer of a fast model costs. What models need of the protocol is little.
"""

from __future__ import annotations

import asyncio
import base64
import select
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote, urlsplit

from hermes.codec.values import Value
from hermes.providers.line import Line

HEAD_BYTES = 128 * 1024


class ProtocolError(Exception):
    """The other side does not speak HTTP/1.1, or stopped in the middle of it."""


class Address(Value):
    """Where a connection leads. `proxy` is the URL of an HTTP proxy on the way, "" for none.
    `connect` is the numeric address of the host, where that is known: then nothing is looked up."""

    host: str
    port: int
    secure: bool
    proxy: str = ""
    connect: str = ""


class Chunks:
    """Takes the chunk framing off: a size, so many bytes, a line end, and again; then a trailer."""

    def __init__(self) -> None:
        self.done = False
        self._rest = b""
        self._left = 0
        self._awaits: Literal["size", "data", "line end", "trailer"] = "size"

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        found: list[bytes] = []
        at = self._whole_chunks(data, found) if self._awaits == "size" else 0
        while not self.done:
            if self._awaits == "data":
                piece = data[at : at + self._left]
                found.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                self._awaits = "line end"
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            self._take_line(data[at:end])
            at = end + 2
        self._rest = data[at:]
        if len(self._rest) > HEAD_BYTES:
            raise ProtocolError("a chunk has no end")
        return b"".join(found)

    def _whole_chunks(self, data: bytes, found: list[bytes]) -> int:
        """Take the chunks that have come whole; where the first other one begins."""
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            size = _chunk_size(data[at:end])
            after = end + 2 + size
            if not size or data[after : after + 2] != b"\r\n":
                break
            found.append(data[end + 2 : after])
            at = after + 2
        return at

    def _take_line(self, line: bytes) -> None:
        if self._awaits == "trailer":
            self.done = not line
        elif self._awaits == "line end":
            if line:
                raise ProtocolError("a chunk is longer than its size")
            self._awaits = "size"
        else:
            self._left = _chunk_size(line)
            self._awaits = "data" if self._left else "trailer"


class Body:
    """Takes the framing off a response body. `feed` gives the content in what came; `done` tells
    that the response is whole. Without a length the end of the connection is its end."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length")
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._chunks = Chunks() if chunked else None
        self._left = _length(length) if length and not chunked else 0
        empty = status in (204, 304) or (not chunked and length is not None and not self._left)
        self.by_end = not chunked and length is None and not empty
        self.done = empty

    def feed(self, data: bytes) -> bytes:
        if self.by_end:
            return data
        if self._chunks is not None:
            piece = self._chunks.feed(data)
            self.done = self._chunks.done
            return piece
        piece = data[: self._left]
        self._left -= len(piece)
        self.done = self._left == 0
        return piece


class Exchange:
    """A response whose body has not been read yet. Header names are in lower case."""

    def __init__(
        self, connection: Connection, status: int, headers: dict[str, str], begun: bytes
    ) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection
        self._body = Body(status, headers)
        self._begun = begun

    @property
    def reusable(self) -> bool:
        """The connection can serve another request."""
        keeps = "close" not in self.headers.get("connection", "").lower()
        return self._body.done and not self._body.by_end and keeps

    async def read(self, seconds: float) -> bytes:
        """The next piece of the body, b"" at its end; TimeoutError, ProtocolError, OSError."""
        while not self._body.done:
            data, self._begun = self._begun, b""
            if not data:
                data = await self._connection.read(seconds)
            if not data:
                if self._body.by_end:
                    self._body.done = True
                    return b""
                raise ProtocolError("the connection ended before the answer did")
            if piece := self._body.feed(data):
                return piece
        return b""


class Connection:
    """An open connection. After an exchange that was read to its end it can be used again."""

    def __init__(self, line: Line, address: Address) -> None:
        self.idle_since = 0.0
        self.read = line.read
        self._begun = b""
        self._line = line
        self._address = address

    @property
    def alive(self) -> bool:
        """Nothing has come for an idle connection: what would is its end, heard of or not yet."""
        if not self._line.is_quiet:
            return False
        waiting = select.poll()
        waiting.register(self._line.transport.get_extra_info("socket"), select.POLLIN)
        return not waiting.poll(0)

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> Exchange:
        """Send a request and wait for the head of the response."""
        await self.send(method, url, headers, body, seconds)
        return await self.head(seconds)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> None:
        place = urlsplit(url)
        target = place.path or "/"
        if place.query:
            target += f"?{place.query}"
        if self._address.proxy and not self._address.secure:
            target = f"http://{place.netloc}{target}"
            headers = {**headers, **_proxy_headers(self._address.proxy)}
        lines = [f"{method} {target} HTTP/1.1", f"host: {place.netloc.rpartition('@')[2]}"]
        lines += [f"{name}: {_line(value)}" for name, value in headers.items()]
        if body or method == "POST":
            lines.append(f"content-length: {len(body)}")
        await self._line.write("\r\n".join((*lines, "", "")).encode("latin-1") + body, seconds)

    async def head(self, seconds: float) -> Exchange:
        """Wait for the head of the response. After a TimeoutError this may be called again."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        while True:
            end = self._begun.find(b"\r\n\r\n")
            if end >= 0:
                status, headers = parse_head(self._begun[:end])
                self._begun = self._begun[end + 4 :]
                if status >= 200:
                    rest, self._begun = self._begun, b""
                    return Exchange(self, status, headers, rest)
                continue
            if len(self._begun) > HEAD_BYTES:
                raise ProtocolError("the head of the answer has no end")
            more = await self.read(due - loop.time())
            if not more:
                raise ProtocolError("the connection ended before the answer began")
            self._begun += more

    def close(self) -> None:
        self._line.close()

    def abort(self) -> None:
        """Drop the connection at once, with whatever is on its way."""
        self._line.abort()


async def open_connection(
    address: Address, trust: ssl.SSLContext | None, seconds: float, *, family: int = 0
) -> Connection:
    """Connect, through a proxy if there is one; TimeoutError, OSError, ProtocolError. `family` is
    the kind of addresses that a name may lead to, 0 for any."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds):
        if not address.proxy:
            _, line = await loop.create_connection(
                lambda: Line(loop),
                address.connect or address.host,
                address.port,
                ssl=trust,
                server_hostname=address.host if address.secure else None,
                family=family,
            )
            return Connection(line, address)
        place = urlsplit(address.proxy)
        _, line = await loop.create_connection(
            lambda: Line(loop), place.hostname or "", place.port or 3128, family=family
        )
        if trust is not None:
            try:
                await _tunnel(line, address, trust, seconds)
            except BaseException:
                line.abort()
                raise
        return Connection(line, address)


async def _tunnel(line: Line, address: Address, trust: ssl.SSLContext, seconds: float) -> None:
    """Ask the proxy for a way through, then speak TLS with who is at its end."""
    target = f"{address.host}:{address.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}"]
    lines += [f"{name}: {value}" for name, value in _proxy_headers(address.proxy).items()]
    await line.write("\r\n".join((*lines, "", "")).encode("latin-1"), seconds)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if len(head) > HEAD_BYTES or not (more := await line.read(seconds)):
            raise ProtocolError("the proxy did not answer")
        head += more
    status, _ = parse_head(head[:-4])
    if status != 200:
        raise ProtocolError(f"the proxy refused with status {status}")
    await line.secure(trust, address.host)


def parse_head(data: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers; repeated headers are joined with commas."""
    first, *lines = data.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdigit():
        raise ProtocolError("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise ProtocolError("a header of the answer has no name")
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return int(status), headers


def _line(value: str) -> str:
    """A header value; one that would begin another header is refused."""
    if "\r" in value or "\n" in value or "\0" in value:
        raise UnicodeError("a header holds a line end")
    return value


def _proxy_headers(proxy: str) -> dict[str, str]:
    place = urlsplit(proxy)
    if not place.username:
        return {}
    pair = f"{unquote(place.username)}:{unquote(place.password or '')}"
    return {"proxy-authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _length(text: str) -> int:
    if not text.isdigit():
        raise ProtocolError("the length of the answer is not a number")
    return int(text)


@lru_cache(maxsize=512)
def _chunk_size(line: bytes) -> int:
    """Servers that send each event as a chunk send few sizes, again and again."""
    digits = line.split(b";", 1)[0].strip()
    if not digits or digits.strip(b"0123456789abcdefABCDEF"):
        raise ProtocolError("the size of a chunk is not a number")
    return int(digits, 16)
