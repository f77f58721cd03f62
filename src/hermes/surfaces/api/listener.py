"""Binds the server socket, refuses unprotected public addresses, and serves until stopped."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from functools import lru_cache
from typing import Any

from uvicorn import Config
from uvicorn import Server as Uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hermes.app.app import App
from hermes.app.run_shared import enable_burst_caching
from hermes.codec.values import Value
from hermes.core.errors import HermesError, UsageError
from hermes.core.session_request import SessionRequest
from hermes.surfaces.api.background_owners import continue_background_work
from hermes.surfaces.api.guard import RequestGuard, is_loopback
from hermes.surfaces.api.server import ApiServer
from hermes.surfaces.api.server_context import ServerContext, delete_expired, open_store
from hermes.surfaces.api.tokens import TokenStore

HEAD_SECONDS = 15.0
OWN_DESCRIPTORS = 256
_BUSY_BODY = (
    b'{"error":{"message":"Too many connections; try again later.","type":"unavailable",'
    b'"param":null,"code":"too_many_connections"}}'
)
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_BUSY_BODY), _BUSY_BODY)
)
# The event loop accepts this many connections at once, and tries as often without a descriptor.
ACCEPTED_AT_ONCE = 64
WAITING_CONNECTIONS = 2048


class ClientConnection(H11Protocol):
    """A connection that closes when the first request head does not arrive in time. It keeps the
    date of responses current. Connections beyond what the open-file limit allows are refused,
    because accepting without free descriptors would keep the process busy."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._late)
        if len(self.connections) > max_connections():
            transport.write(BUSY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        self.server_state.default_headers = _date_headers(int(time.time()))
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        if self.cycle is None:
            with suppress(OSError):
                self.transport.close()


def max_connections() -> int:
    """The connections for which there are file descriptors, besides those for files, models and
    commands."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(limit // 2, limit - OWN_DESCRIPTORS)


@lru_cache(maxsize=1)
def _date_headers(now: int) -> list[tuple[bytes, bytes]]:
    return [(b"date", formatdate(now, usegmt=True).encode())]


log = logging.getLogger(__name__)

IDLE_SECONDS = 75
LONGEST_HEAD = 32 * 1024
HOUR = 3_600.0
# Sessions that open in a burst share what they look up.
BURST_SECONDS = 0.5
WARM_UP_SECONDS = 2.0


class ListenAddress(Value):
    """The address and its protection. `proxied` means that a proxy in front terminates TLS."""

    host: str
    port: int
    public: bool = False
    certificate: str = ""
    key: str = ""
    proxied: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def check_address(address: ListenAddress) -> None:
    """Raise UsageError for a public address without confirmation or TLS."""
    if bool(address.certificate) != bool(address.key):
        raise UsageError("TLS needs both --cert and --key.")
    if is_loopback(address.host):
        return
    if not address.public:
        raise UsageError(
            f"{address.host} can be reached from other machines; confirm with --public."
        )
    if not address.certificate and not address.proxied:
        raise UsageError(
            "Tokens must not be sent unencrypted: use --cert and --key, or --behind-proxy if a "
            "proxy in front terminates TLS."
        )


def listen(address: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"{address.host}:{address.port} cannot be used ({error.strerror}); "
            "choose another port with --port."
        ) from error
    listener.listen(WAITING_CONNECTIONS)
    listener.setblocking(False)
    return listener


async def serve(
    app: App,
    tokens: TokenStore,
    address: ListenAddress,
    listening: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    """Serve until the process is stopped. Calls `on_ready` when the server is ready."""
    store = open_store(app.context.home.root)
    server = ServerContext(app, store)
    guard = RequestGuard(tokens, host=address.host, hosts=address.hosts, origins=address.origins)
    enable_burst_caching(app, BURST_SECONDS)
    config = Config(
        ApiServer(server, guard),
        http=ClientConnection,
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        ssl_certfile=address.certificate or None,
        ssl_keyfile=address.key or None,
    )
    own = _Listening(config, server, on_ready)
    try:
        await delete_expired(server)
        await _warm_up(app)
        # Loaded modules stay; a full garbage collection over them would pause all streams.
        gc.collect()
        gc.freeze()
        await server.run_executor.continue_unfinished()
        await continue_background_work(app, server.run_executor, "api")
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(server.metrics.watch_loop())
            upkeep = group.create_task(_upkeep(server))
            await own.serve(sockets=[listening])
            watch.cancel()
            upkeep.cancel()
    finally:
        await server.run_executor.drain(0)
        await store.close()


async def _warm_up(app: App) -> None:
    """Open and close a session, so that modules are loaded before the first request. Nothing is
    stored. A model that is unreachable now may be reachable later."""
    # Looks like a secret, so that the redactor is loaded too.
    app.context.redactor.text("token: none")
    try:
        async with asyncio.timeout(WARM_UP_SECONDS):
            session = await app.open(SessionRequest(source="api", platform="api", attended=False))
            try:
                transcript = session.transcript
                app.models.connect(transcript.model, transcript.provider, session.meter)
            finally:
                await app.close_session(session)
    except (HermesError, TimeoutError) as error:
        log.warning("no model yet", extra={"why": str(error)})


async def _upkeep(server: ServerContext) -> None:
    clock = server.app.context.world.clock
    while True:
        await clock.sleep(HOUR)
        await delete_expired(server)


class _Listening(Uvicorn):
    """Reports readiness, and lets turns end before connections close."""

    def __init__(self, config: Config, server: ServerContext, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._server = server
        self._on_ready = on_ready
        self._stopped = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A stop signal ends the process with exit code 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True
        self._stopped.set()

    async def main_loop(self) -> None:
        """Wait for a stop signal. The base class looks for one ten times per second."""
        await self._stopped.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            # The base class has shortened the queue of waiting connections.
            each.listen(WAITING_CONNECTIONS)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._server.run_executor.drain(self._server.settings.drain_seconds)
        await super().shutdown(sockets)
