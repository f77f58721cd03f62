"""A small HTTP server for platforms that call back: whole requests in, JSON out."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import unquote

from uvicorn import Config, Server

from hermes.codec.json import encode
from hermes.core.errors import PlatformUnreachable

log = logging.getLogger(__name__)


class Incoming(NamedTuple):
    """A request. Header names are in lower case. `body` is None when it is too long."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None


class HttpAnswer(NamedTuple):
    status: int = 200
    # Encoded as JSON.
    content: object = None


Handle = Callable[[Incoming], Awaitable[HttpAnswer]]


@asynccontextmanager
async def listen(
    host: str, port: int, handle: Handle, *, max_body_bytes: int
) -> AsyncIterator[int]:
    """Serve within the block, which gets the port. PlatformUnreachable if it is taken."""
    channel = _bind(host, port)
    app = _Application(handle, max_body_bytes)
    config = Config(app, lifespan="off", ws="none", log_config=None, access_log=False,
                    server_header=False, timeout_graceful_shutdown=1)  # fmt: skip
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[channel]))
    try:
        yield channel.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        channel.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    channel = socket.socket(family, socket.SOCK_STREAM)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        channel.bind((host, port))
    except OSError as error:
        channel.close()
        raise PlatformUnreachable(
            f"Port {port} on {host} cannot be used ({error.strerror}); choose another one."
        ) from error
    return channel


class _Server(Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals belong to the gateway.
        yield


class _Application:
    """The ASGI application."""

    def __init__(self, handle: Handle, max_body_bytes: int) -> None:
        self._handle = handle
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            answer = await self._handle(await self._read(scope, receive))
        except ConnectionError:
            return
        except Exception:
            # The sender repeats a request that failed; others go on.
            log.exception("a request to the gateway failed", extra={"path": scope["path"]})
            answer = HttpAnswer(500, {"error": "internal error"})
        body = b"" if answer.content is None else encode(answer.content)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _read(self, scope: Any, receive: Any) -> Incoming:
        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        body: bytearray | None = bytearray()
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._max_body_bytes:
            body = None
        more = body is not None
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError
            if body is not None:
                body += message.get("body", b"")
                if len(body) > self._max_body_bytes:
                    body = None
            more = message.get("more_body", False) and body is not None
        whole = None if body is None else bytes(body)
        return Incoming(scope["method"], unquote(scope["path"]), headers, whole)
