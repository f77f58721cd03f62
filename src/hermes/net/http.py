"""An HTTP client with kept-alive connections; all failures are ProviderError."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from hermes.codec.values import Value, replace
from hermes.core.errors import ProviderError, Reason
from hermes.net.addresses import host_of, is_local
from hermes.net.http11 import (
    ConnectionTarget,
    HttpConnection,
    HttpExchange,
    ProtocolError,
    open_http_connection,
)
from hermes.version import __version__

T = TypeVar("T")

USER_AGENT = f"hermes-agent/{__version__}"
MAX_BODY_BYTES = 64 * 1024 * 1024
_ERROR_BODY_BYTES = 64 * 1024
_UNPACKED_BYTES = 256 * 1024
_DRAIN_SECONDS = 0.25
_IDLE_SECONDS = 30.0
_IDLE_CONNECTIONS = 20


class StallPolicy(Protocol):
    """Decides how long to wait for a silent server."""

    async def wait_for(self, attempt: Callable[[float], Awaitable[T]]) -> T:
        """Run `attempt(seconds)`, which may be repeated after a TimeoutError and continues where it
        was. Raise ProviderError when waiting is pointless."""
        ...


class Timeouts(Value):
    """The time limits of a request, in seconds."""

    connect: float = 10.0
    # Without a byte.
    read: float = 120.0
    # With nothing but keep-alives.
    stale: float = 180.0
    # For a response that is not streamed.
    whole: float = 1800.0
    # For a streamed response that keeps arriving.
    total: float = 3600.0
    # Replaces the last four.
    stall_policy: StallPolicy | None = None

    def for_unstreamed(self) -> Timeouts:
        return replace(self, read=max(self.read, self.whole))


# A local server may process a long prompt for many minutes without output.
LOCAL_TIMEOUTS = Timeouts(read=1800.0, stale=1800.0, total=6 * 3600.0)


class ResponseSource(Protocol):
    """A response as it arrives: an `HttpExchange` on the network, or a recorded one."""

    status: int
    headers: dict[str, str]

    @property
    def reusable(self) -> bool: ...

    async def read(self, seconds: float) -> bytes: ...


class HttpResponse:
    """A response whose body has not been read yet. Header names are in lower case."""

    def __init__(self, exchange: ResponseSource, host: str, seconds: float) -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self._exchange = exchange
        self._host = host
        self._seconds = seconds

    def wrap(self, listen: Callable[[ResponseSource], ResponseSource]) -> HttpResponse:
        """Return the same response, read through a listener."""
        return HttpResponse(listen(self._exchange), self._host, self._seconds)

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def chunks(self) -> AsyncGenerator[bytes]:
        packed = self.headers.get("content-encoding", "identity").lower() in ("gzip", "deflate")
        # 47 accepts gzip and zlib. Some proxies compress although we do not ask for it.
        unpack = zlib.decompressobj(47) if packed else None
        with _translate_errors(self._host, begun=True):
            while data := await self._exchange.read(self._seconds):
                if unpack is None:
                    yield data
                    continue
                # In small pieces: a few bytes may unpack to gigabytes, and the reader may stop.
                while piece := unpack.decompress(data, _UNPACKED_BYTES):
                    yield piece
                    data = unpack.unconsumed_tail

    async def read(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the whole body, or its first `limit` bytes."""
        body = bytearray()
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= limit:
                    break
        return bytes(body[:limit])

    async def read_error(self) -> str:
        """Return the body of an error response, as far as it arrived."""
        try:
            body = await self.read(_ERROR_BODY_BYTES)
        except ProviderError:
            return ""
        return body.decode("utf-8", "replace")

    async def drain(self) -> None:
        """Read the rest of a finished response, so that the connection can be reused. If the server
        keeps the response open, the connection is closed."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS), aclosing(self.chunks()) as chunks:
                async for _ in chunks:
                    pass
        except (TimeoutError, ProviderError):
            return


ResponseContext = AbstractAsyncContextManager[HttpResponse]


class Interceptor(Protocol):
    """Intercepts requests: `real` performs the actual exchange."""

    def exchange(
        self, url: str, body: bytes, real: Callable[[], ResponseContext]
    ) -> ResponseContext: ...


current_interceptor: ContextVar[Interceptor | None] = ContextVar("interceptor", default=None)
"""The interceptor for requests of the running task."""


class HttpClient:
    """An HTTP client that all providers of a process share. Connects on first use and loads
    certificates for the first HTTPS address. Local hosts bypass the proxy. `only_ipv4` is for
    networks where IPv6 is broken."""

    def __init__(
        self,
        *,
        proxy: str | None = None,
        no_proxy: str = "",
        ca_file: str | None = None,
        only_ipv4: bool = False,
    ) -> None:
        self._family = socket.AF_INET if only_ipv4 else socket.AF_UNSPEC
        self._proxy = proxy or ""
        self._no_proxy = tuple(name.strip().lstrip(".") for name in no_proxy.split(",") if name)
        self._ca_file = ca_file
        self._context: ssl.SSLContext | None = None
        self._idle: dict[ConnectionTarget, list[HttpConnection]] = {}

    def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> ResponseContext:
        return self.send("POST", url, body=body, headers=headers, timeouts=timeouts)

    def get(self, url: str, *, headers: Mapping[str, str], timeouts: Timeouts) -> ResponseContext:
        return self.send("GET", url, body=b"", headers=headers, timeouts=timeouts)

    def send(
        self, method: str, url: str, *, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> ResponseContext:
        """Return the response to a request. Leaving the block before the end of the response closes
        the connection."""
        interceptor = current_interceptor.get()
        if interceptor is None:
            return self._exchange(method, url, body, headers, timeouts)
        real = partial(self._exchange, method, url, body, headers, timeouts)
        return interceptor.exchange(url, body, real)

    def preload_certificates(self, url: str) -> None:
        """Load certificates for this address in advance; send nothing."""
        if self._address(url).secure:
            self._tls_context()

    async def aclose(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    @asynccontextmanager
    async def _exchange(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AsyncIterator[HttpResponse]:
        host = host_of(url)
        with _translate_errors(host, begun=False):
            address = self._address(url)
            connection, exchange = await self._send(address, method, url, body, headers, timeouts)
        policy = timeouts.stall_policy
        source = _StallCheckedExchange(exchange, policy) if policy else exchange
        try:
            yield HttpResponse(source, host, timeouts.read)
        finally:
            if exchange.reusable:
                self._keep(address, connection)
            else:
                connection.abort()

    async def _send(
        self,
        address: ConnectionTarget,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeouts: Timeouts,
    ) -> tuple[HttpConnection, HttpExchange]:
        headers = {"user-agent": USER_AGENT, "accept-encoding": "identity", **headers}
        while True:
            used = connection = self._take_idle(address)
            if connection is None:
                trust = self._tls_context() if address.secure else None
                with _translate_errors(host_of(url), begun=False, unsent=True):
                    connection = await _open(address, trust, timeouts.connect, self._family)
            try:
                await connection.send(method, url, headers, body, timeouts.read)
                policy, head = timeouts.stall_policy, connection.head
                exchange = await (policy.wait_for(head) if policy else head(timeouts.read))
                return connection, exchange
            except (ProtocolError, ConnectionError):
                connection.abort()
                # The server may have closed an idle connection just as the request was sent, or
                # after it performed a POST: repeating that could charge twice.
                if used is None or method == "POST":
                    raise
            except BaseException:
                connection.abort()
                raise

    def _address(self, url: str) -> ConnectionTarget:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host:
            raise ValueError("not an http address")
        direct = is_local(host) or any(
            host == name or host.endswith(f".{name}") or name == "*" for name in self._no_proxy
        )
        return ConnectionTarget(
            host=host,
            port=parts.port or (443 if secure else 80),
            secure=secure,
            proxy="" if direct else self._proxy,
        )

    def _take_idle(self, address: ConnectionTarget) -> HttpConnection | None:
        connections = self._idle.get(address, [])
        while connections:
            connection = connections.pop()
            if connection.is_alive and time.monotonic() - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    def _keep(self, address: ConnectionTarget, connection: HttpConnection) -> None:
        connections = self._idle.setdefault(address, [])
        if len(connections) >= _IDLE_CONNECTIONS:
            connections.pop(0).close()
        connection.idle_since = time.monotonic()
        connections.append(connection)

    def _tls_context(self) -> ssl.SSLContext:
        if self._context is None:
            try:
                self._context = ssl.create_default_context(cafile=self._ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ProviderError(
                    f"The CA bundle {self._ca_file} cannot be read ({error}); check its path.",
                    reason="ssl_cert_verification",
                ) from error
        return self._context


class _StallCheckedExchange:
    """An exchange whose waits are controlled by a stall policy."""

    def __init__(self, exchange: HttpExchange, policy: StallPolicy) -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self._exchange = exchange
        self._policy = policy

    @property
    def reusable(self) -> bool:
        return self._exchange.reusable

    async def read(self, seconds: float) -> bytes:
        return await self._policy.wait_for(self._exchange.read)


async def _open(
    address: ConnectionTarget, trust: ssl.SSLContext | None, seconds: float, family: int
) -> HttpConnection:
    """Connect. Try 127.0.0.1 for `localhost` too: some machines resolve that name to an address
    without a listener, or not at all."""
    try:
        return await open_http_connection(address, trust, seconds, family=family)
    except (OSError, TimeoutError):
        if address.host != "localhost" or address.secure:
            raise
        loopback = replace(address, host="127.0.0.1")
        return await open_http_connection(loopback, trust, seconds, family=family)


@contextmanager
def _translate_errors(host: str, *, begun: bool, unsent: bool = False) -> Iterator[None]:
    """Turn network errors into ProviderError. The original may quote a header with the key, so it
    is not kept as the cause."""
    failed: ProviderError | None = None
    try:
        yield
    except (OSError, EOFError, ProtocolError, ValueError, zlib.error) as error:
        failed = _failure(error, host, begun=begun)
        failed.unsent = unsent
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
            return _error(f"{host} did not respond in time; check the network.", "timeout")
        case ssl.SSLCertVerificationError():
            return _error(
                f"The certificate of {host} cannot be verified;"
                " configure your network's CA bundle.",
                "ssl_cert_verification",
            )
        case ConnectionRefusedError():
            advice = "is the server running?" if is_local(host) else "check the network and proxy."
            return _error(f"No connection to {host}: {advice}", "timeout")
        case ProtocolError() | ConnectionError() | EOFError() | zlib.error():
            when = "in the middle of its response" if begun else "before it responded"
            return _error(f"{host} closed the connection {when}; try again.", "cut")
        case OSError():
            return _error(f"No connection to {host}: check the network and proxy.", "timeout")
        case UnicodeError():
            return _error("The key or a header contains characters that cannot be sent.", "auth")
        case _:
            return _error(f"'{host}' is not a valid HTTP address.", "format_error")


def _error(message: str, reason: Reason) -> ProviderError:
    return ProviderError(message, reason=reason, retryable=reason in ("timeout", "cut"))
