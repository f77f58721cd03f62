"""The one way to the network: kept-alive HTTP connections whose failures are all ProviderError."""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from urllib.parse import urlsplit

from hermes.codec.values import Value, replace
from hermes.core.errors import ProviderError, Reason
from hermes.providers.endpoint import host_of, is_local
from hermes.providers.http11 import Address, Connection, Exchange, ProtocolError, open_connection
from hermes.version import __version__

USER_AGENT = f"hermes-agent/{__version__}"
MAX_BODY_BYTES = 64 * 1024 * 1024
_ERROR_BODY_BYTES = 64 * 1024
_DRAIN_SECONDS = 0.25
_IDLE_SECONDS = 30.0
_IDLE_CONNECTIONS = 20


class Timeouts(Value):
    """In seconds. `read` is how long no byte may come, `stale` how long nothing but keep-alives
    may come. As long as something comes, an answer may take for ever. `whole` is the wait for an
    answer that is not streamed, of which nothing can be seen before its end."""

    connect: float = 10.0
    read: float = 120.0
    stale: float = 180.0
    whole: float = 1800.0

    def for_whole(self) -> Timeouts:
        return replace(self, read=max(self.read, self.whole))


# A local server may read a long prompt for many minutes without a sign of life.
LOCAL_TIMEOUTS = Timeouts(read=1800.0, stale=1800.0)


class Answer:
    """A response whose body has not been read yet. Header names are in lower case."""

    def __init__(self, exchange: Exchange, host: str, seconds: float) -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self._exchange = exchange
        self._host = host
        self._seconds = seconds

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def chunks(self) -> AsyncGenerator[bytes]:
        packed = self.headers.get("content-encoding", "identity").lower() in ("gzip", "deflate")
        # 47: gzip or zlib, whichever it is. Asked for neither, some proxies send it all the same.
        unpack = zlib.decompressobj(47) if packed else None
        with _translated(self._host, begun=True):
            while data := await self._exchange.read(self._seconds):
                yield unpack.decompress(data) if unpack else data

    async def read(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """The whole body, or its first `limit` bytes."""
        body = bytearray()
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    async def read_error(self) -> str:
        """The body of an error, as far as it came."""
        try:
            body = await self.read(_ERROR_BODY_BYTES)
        except ProviderError:
            return ""
        return body.decode("utf-8", "replace")

    async def drain(self) -> None:
        """Read what is left of a finished answer, so that the connection can serve the next one.
        A server that keeps it open loses the connection instead."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS), aclosing(self.chunks()) as chunks:
                async for _ in chunks:
                    pass
        except (TimeoutError, ProviderError):
            return


class Http:
    """Shared by all providers of a process. Connects on first use; certificates are loaded for
    the first secure address only, and local hosts need no proxy."""

    def __init__(
        self, *, proxy: str | None = None, no_proxy: str = "", ca_file: str | None = None
    ) -> None:
        self._proxy = proxy or ""
        self._no_proxy = tuple(name.strip().lstrip(".") for name in no_proxy.split(",") if name)
        self._ca_file = ca_file
        self._context: ssl.SSLContext | None = None
        self._idle: dict[Address, list[Connection]] = {}

    @asynccontextmanager
    async def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncIterator[Answer]:
        """The answer to a POST. The connection is closed at once when the block is left before the
        end of the answer."""
        async with self._exchange("POST", url, body, headers, timeouts) as answer:
            yield answer

    @asynccontextmanager
    async def get(
        self, url: str, *, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncIterator[Answer]:
        async with self._exchange("GET", url, b"", headers, timeouts) as answer:
            yield answer

    def warm(self, url: str) -> None:
        """Load what a request to this address will need; takes a while, sends nothing."""
        if self._address(url).secure:
            self._trust()

    async def aclose(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    @asynccontextmanager
    async def _exchange(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncIterator[Answer]:
        host = host_of(url)
        with _translated(host, begun=False):
            address = self._address(url)
            connection, exchange = await self._send(address, method, url, body, headers, timeouts)
        try:
            yield Answer(exchange, host, timeouts.read)
        finally:
            if exchange.reusable:
                self._keep(address, connection)
            else:
                connection.abort()

    async def _send(
        self,
        address: Address,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeouts: Timeouts,
    ) -> tuple[Connection, Exchange]:
        headers = {"user-agent": USER_AGENT, "accept-encoding": "identity", **headers}
        while True:
            used = self._take_idle(address)
            trust = self._trust() if address.secure else None
            connection = used or await open_connection(address, trust, timeouts.connect)
            try:
                return connection, await connection.request(
                    method, url, headers, body, timeouts.read
                )
            except (ProtocolError, ConnectionError):
                connection.abort()
                # A server may close an idle connection just when the next request is on its way.
                if used is None:
                    raise
            except BaseException:
                connection.abort()
                raise

    def _address(self, url: str) -> Address:
        place = urlsplit(url)
        secure = place.scheme == "https"
        host = place.hostname or ""
        if place.scheme not in ("http", "https") or not host:
            raise ValueError("not an http address")
        direct = is_local(host) or any(
            host == name or host.endswith(f".{name}") or name == "*" for name in self._no_proxy
        )
        return Address(
            host=host,
            port=place.port or (443 if secure else 80),
            secure=secure,
            proxy="" if direct else self._proxy,
        )

    def _take_idle(self, address: Address) -> Connection | None:
        connections = self._idle.get(address, [])
        while connections:
            connection = connections.pop()
            if connection.alive and time.monotonic() - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def _keep(self, address: Address, connection: Connection) -> None:
        connections = self._idle.setdefault(address, [])
        if len(connections) >= _IDLE_CONNECTIONS:
            connections.pop(0).close()
        connection.idle_since = time.monotonic()
        connections.append(connection)

    def _trust(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                self._context = ssl.create_default_context(cafile=self._ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ProviderError(
                    f"The CA bundle {self._ca_file} cannot be read ({error}); correct its path.",
                    reason="ssl_cert_verification",
                ) from error
        return self._context


@contextmanager
def _translated(host: str, *, begun: bool) -> Iterator[None]:
    """Errors of the network inside the block become ours. Theirs may quote a header, and with it
    the key, so it is not kept as a cause."""
    failed: ProviderError | None = None
    try:
        yield
    except (OSError, EOFError, ProtocolError, ValueError, zlib.error) as error:
        failed = _failure(error, host, begun=begun)
    if failed is not None:
        try:
            raise failed
        except ProviderError:
            failed.__context__ = None
            raise


def _failure(error: Exception, host: str, *, begun: bool) -> ProviderError:
    match error:
        case TimeoutError() if begun:
            return _error(f"{host} sent nothing for too long; try again.", "timeout")
        case TimeoutError():
            return _error(f"{host} did not answer in time; check the network.", "timeout")
        case ssl.SSLCertVerificationError():
            return _error(
                f"The certificate of {host} cannot be verified; give your network's CA bundle.",
                "ssl_cert_verification",
            )
        case ConnectionRefusedError():
            advice = "is the server running?" if is_local(host) else "check the network and proxy."
            return _error(f"No connection to {host}: {advice}", "timeout")
        case ProtocolError() | ConnectionError() | EOFError() | zlib.error():
            when = "in the middle of its answer" if begun else "before it answered"
            return _error(f"{host} closed the connection {when}; try again.", "cut")
        case OSError():
            return _error(f"No connection to {host}: check the network and proxy.", "timeout")
        case UnicodeError():
            return _error("The key or a header holds characters that cannot be sent.", "auth")
        case _:
            return _error(f"'{host}' is not an address that can be asked.", "format_error")


def _error(message: str, reason: Reason) -> ProviderError:
    return ProviderError(message, reason=reason, retryable=reason in ("timeout", "cut"))
