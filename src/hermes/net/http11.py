"""HTTP/1.1 over asyncio: one connection, one exchange at a time, streamed bodies."""

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
from hermes.net.stream import ByteStream

MAX_HEAD_BYTES = 128 * 1024


class ProtocolError(Exception):
    """The peer does not speak HTTP/1.1, or stopped in the middle of a message."""


class ConnectionTarget(Value):
    """Where to connect."""

    host: str
    port: int
    secure: bool
    # The URL of an HTTP proxy, or "".
    proxy: str = ""
    # The numeric address of the host; if set, DNS is not used.
    connect: str = ""


class ChunkedDecoder:
    """Decodes chunked transfer coding."""

    def __init__(self) -> None:
        self.done = False
        self._rest = b""
        self._left = 0
        self._state: Literal["size", "data", "line end", "trailer"] = "size"

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        chunks: list[bytes] = []
        at = self._take_whole_chunks(data, chunks) if self._state == "size" else 0
        while not self.done:
            if self._state == "data":
                piece = data[at : at + self._left]
                chunks.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                self._state = "line end"
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            self._take_line(data[at:end])
            at = end + 2
        self._rest = data[at:]
        if len(self._rest) > MAX_HEAD_BYTES:
            raise ProtocolError("a chunk header is too long")
        return b"".join(chunks)

    def _take_whole_chunks(self, data: bytes, chunks: list[bytes]) -> int:
        """Take all chunks that arrived completely; return where the first incomplete chunk
        starts."""
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            size = _chunk_size(data[at:end])
            after = end + 2 + size
            if not size or data[after : after + 2] != b"\r\n":
                break
            chunks.append(data[end + 2 : after])
            at = after + 2
        return at

    def _take_line(self, line: bytes) -> None:
        if self._state == "trailer":
            self.done = not line
        elif self._state == "line end":
            if line:
                raise ProtocolError("a chunk is longer than its size")
            self._state = "size"
        else:
            self._left = _chunk_size(line)
            self._state = "data" if self._left else "trailer"


class ResponseBody:
    """Decodes a response body. `feed` returns content, and `done` becomes true at its end. Without
    a length the body ends with the connection."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length")
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._chunks = ChunkedDecoder() if chunked else None
        self._left = _length(length) if length and not chunked else 0
        empty = status in (204, 304) or (not chunked and length is not None and not self._left)
        self.ends_with_connection = not chunked and length is None and not empty
        self.done = empty

    def feed(self, data: bytes) -> bytes:
        if self.ends_with_connection:
            return data
        if self._chunks is not None:
            piece = self._chunks.feed(data)
            self.done = self._chunks.done
            return piece
        piece = data[: self._left]
        self._left -= len(piece)
        self.done = self._left == 0
        return piece


class HttpExchange:
    """A response whose body has not been read yet. Header names are in lower case."""

    def __init__(
        self, connection: HttpConnection, status: int, headers: dict[str, str], begun: bytes
    ) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection
        self._body = ResponseBody(status, headers)
        self._buffered = begun

    @property
    def reusable(self) -> bool:
        """True if the connection can serve another request."""
        keep_alive = "close" not in self.headers.get("connection", "").lower()
        return self._body.done and not self._body.ends_with_connection and keep_alive

    async def read(self, seconds: float) -> bytes:
        """Return the next piece of the body, b"" at its end. Raise TimeoutError, ProtocolError,
        OSError."""
        while not self._body.done:
            data, self._buffered = self._buffered, b""
            if not data:
                data = await self._connection.read(seconds)
            if not data:
                if self._body.ends_with_connection:
                    self._body.done = True
                    return b""
                raise ProtocolError("the connection ended before the response did")
            if piece := self._body.feed(data):
                return piece
        return b""


class HttpConnection:
    """An open connection, reusable after an exchange that was read to its end."""

    def __init__(self, stream: ByteStream, address: ConnectionTarget) -> None:
        self.idle_since = 0.0
        self.read = stream.read
        self._buffered = b""
        self._stream = stream
        self._address = address

    @property
    def is_alive(self) -> bool:
        """Whether an idle connection is alive: any input while it is idle means that it was
        closed."""
        if not self._stream.is_idle:
            return False
        poll = select.poll()
        poll.register(self._stream.transport.get_extra_info("socket"), select.POLLIN)
        return not poll.poll(0)

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> HttpExchange:
        """Send a request and wait for the response head."""
        await self.send(method, url, headers, body, seconds)
        return await self.head(seconds)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> None:
        parts = urlsplit(url)
        target = parts.path or "/"
        if parts.query:
            target += f"?{parts.query}"
        if self._address.proxy and not self._address.secure:
            target = f"http://{parts.netloc}{target}"
            headers = {**headers, **_proxy_headers(self._address.proxy)}
        lines = [f"{method} {target} HTTP/1.1", f"host: {parts.netloc.rpartition('@')[2]}"]
        lines += [f"{name}: {_header_value(value)}" for name, value in headers.items()]
        if body or method == "POST":
            lines.append(f"content-length: {len(body)}")
        head = "\r\n".join((*lines, "", "")).encode("latin-1")
        await self._stream.write(head + body, seconds)

    async def head(self, seconds: float) -> HttpExchange:
        """Wait for the response head. May be called again after a TimeoutError."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        while True:
            end = self._buffered.find(b"\r\n\r\n")
            if end >= 0:
                status, headers = parse_head(self._buffered[:end])
                self._buffered = self._buffered[end + 4 :]
                if status >= 200:
                    rest, self._buffered = self._buffered, b""
                    return HttpExchange(self, status, headers, rest)
                continue
            if len(self._buffered) > MAX_HEAD_BYTES:
                raise ProtocolError("the response head is too long")
            more = await self.read(due - loop.time())
            if not more:
                raise ProtocolError("the connection ended before the response began")
            self._buffered += more

    def close(self) -> None:
        self._stream.close()

    def abort(self) -> None:
        """Close the connection immediately and drop pending data."""
        self._stream.abort()


async def open_http_connection(
    address: ConnectionTarget, trust: ssl.SSLContext | None, seconds: float, *, family: int = 0
) -> HttpConnection:
    """Connect, through a proxy if set. Raise TimeoutError, OSError, ProtocolError. `family`
    restricts DNS results to an address family; 0 allows any."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds):
        if not address.proxy:
            _, stream = await loop.create_connection(
                lambda: ByteStream(loop),
                address.connect or address.host,
                address.port,
                ssl=trust,
                server_hostname=address.host if address.secure else None,
                family=family,
            )
            return HttpConnection(stream, address)
        place = urlsplit(address.proxy)
        _, stream = await loop.create_connection(
            lambda: ByteStream(loop), place.hostname or "", place.port or 3128, family=family
        )
        if trust is not None:
            try:
                await _tunnel(stream, address, trust, seconds)
            except BaseException:
                stream.abort()
                raise
        return HttpConnection(stream, address)


async def _tunnel(
    stream: ByteStream, address: ConnectionTarget, trust: ssl.SSLContext, seconds: float
) -> None:
    """Open a CONNECT tunnel through the proxy, then start TLS inside it."""
    target = f"{address.host}:{address.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}"]
    lines += [f"{name}: {value}" for name, value in _proxy_headers(address.proxy).items()]
    await stream.write("\r\n".join((*lines, "", "")).encode("latin-1"), seconds)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        if len(head) > MAX_HEAD_BYTES or not (more := await stream.read(seconds)):
            raise ProtocolError("the proxy did not respond")
        head += more
    status, _ = parse_head(head[:-4])
    if status != 200:
        raise ProtocolError(f"the proxy refused with status {status}")
    await stream.start_tls(trust, address.host)


def parse_head(data: bytes) -> tuple[int, dict[str, str]]:
    """Return status and headers. Repeated headers are joined with commas."""
    first, *lines = data.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    status, after = rest[:3], rest[3:4]
    if not version.startswith("HTTP/1.") or not status.isdigit() or after.strip():
        raise ProtocolError("the response is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        # Space before the colon, folded lines and lone line ends are read differently by others.
        if not colon or not name or any(sign in name for sign in " \t"):
            raise ProtocolError("a response header has no name")
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if any(sign in data.replace(b"\r\n", b"") for sign in (b"\r", b"\n", b"\0")):
        raise ProtocolError("a response header contains a line end")
    return int(status), headers


def _header_value(value: str) -> str:
    """Reject a header value that would start another header."""
    if "\r" in value or "\n" in value or "\0" in value:
        raise UnicodeError("a header contains a line end")
    return value


def _proxy_headers(proxy: str) -> dict[str, str]:
    place = urlsplit(proxy)
    if not place.username:
        return {}
    pair = f"{unquote(place.username)}:{unquote(place.password or '')}"
    return {"proxy-authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _length(text: str) -> int:
    if not text.isdigit():
        raise ProtocolError("the content length is not a number")
    return int(text)


@lru_cache(maxsize=512)
def _chunk_size(line: bytes) -> int:
    """Parse a chunk size. Cached: servers that send each event as a chunk repeat a few sizes."""
    digits = line.split(b";", 1)[0].strip()
    if not digits or digits.strip(b"0123456789abcdefABCDEF"):
        raise ProtocolError("a chunk size is not a number")
    return int(digits, 16)
