"""Manages the connection to one server: opens on demand, reconnects, closes when idle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from math import inf
from typing import TYPE_CHECKING, TypeVar

from hermes.core.world import Clock, World
from hermes.mcp.calls import ToolCaller
from hermes.mcp.listing import ToolListing
from hermes.mcp.server import (
    CallTimeout,
    ConnectionLost,
    IssuerFailed,
    McpServer,
    NeedsLogin,
    ServerFault,
    SessionExpired,
    Unreachable,
)
from hermes.mcp.server_requests import ServerRequests

if TYPE_CHECKING:
    from hermes.mcp.connection import McpConnection

FAILURES = 3
OPEN_SECONDS = 60.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
TRIES = 5
PARKED_SECONDS = 300.0


class RetryDelay:
    """Blocks attempts for a while after failures; `delays` returns the seconds for a number of
    failures."""

    def __init__(self, clock: Clock, delays: Callable[[int], float]) -> None:
        self._clock = clock
        self._delays = delays
        self._failures = 0
        self._until = 0.0

    @property
    def left_seconds(self) -> float:
        """Returns the seconds until an attempt is allowed."""
        return max(0.0, self._until - self._clock.monotonic())

    def record_failure(self) -> None:
        self._failures += 1
        self._until = self._clock.monotonic() + self._delays(self._failures)

    def record_success(self) -> None:
        self._failures = 0
        self._until = 0.0


def call_delay(failures: int) -> float:
    """Return how long calls are blocked after consecutive failures; then one is allowed."""
    return OPEN_SECONDS if failures >= FAILURES else 0.0


def connect_delay(failures: int) -> float:
    """Return the delay, which grows exponentially; after several attempts a long pause follows."""
    if failures >= TRIES:
        return PARKED_SECONDS
    return min(FIRST_WAIT_SECONDS * 2.0 ** (failures - 1), LONGEST_WAIT_SECONDS)


log = logging.getLogger(__name__)

ATTEMPTS = 3
GRACE_SECONDS = 5.0
PATIENCE_SECONDS = 8.0
T = TypeVar("T")
Seen = Callable[[McpServer, ToolListing], None]


class ServerLink:
    """The connection to one server, owned by one task. `open_connection` performs the handshake;
    `seen` receives each new listing."""

    def __init__(
        self,
        server: McpServer,
        open_connection: Callable[
            [ServerRequests, Callable[[], None]], AbstractAsyncContextManager[McpConnection]
        ],
        seen: Seen,
        world: World,
        folder: str,
    ) -> None:
        self.server = server
        self._open = open_connection
        self._seen = seen
        self._world = world
        self._answering = ServerRequests(server, world, folder)
        self._breaker = RetryDelay(world.clock, call_delay)
        self._backoff = RetryDelay(world.clock, connect_delay)
        self._connecting = asyncio.Lock()
        self._call_slots = asyncio.Semaphore(16 if server.supports_parallel_tool_calls else 1)
        self._owner: asyncio.Task[None] | None = None
        self._connection: McpConnection | None = None
        self._release = asyncio.Event()
        self._ended: ServerFault | None = None
        self._changed = asyncio.Event()
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._used_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    async def call(
        self, work: Callable[[McpConnection], Awaitable[T]], caller: ToolCaller | None = None
    ) -> T:
        """Run `work` on the connection; raise ServerFault. Retry once on a new connection when the
        server certainly did not execute it."""
        if left := self._breaker.left_seconds:
            name = self.server.name
            message = f"MCP server {name} unavailable ({FAILURES} failures), retry in {left:.0f}s"
            raise Unreachable(message, retryable=True)
        async with self._call_slots:
            try:
                result = await self._run_on_connection(work, caller)
            except SessionExpired:
                await self.close()
                result = await self._run_on_connection(work, caller)
            except (CallTimeout, ConnectionLost, Unreachable) as fault:
                self._breaker.record_failure()
                if isinstance(fault, ConnectionLost):
                    await self.close()
                    if isinstance(self._ended, NeedsLogin | IssuerFailed):
                        raise self._ended from fault
                raise
        self._breaker.record_success()
        return result

    async def listing(self) -> ToolListing:
        """Return the current listing; connects if necessary."""
        return await self.call(lambda connection: connection.listing())

    def retune(self, server: McpServer) -> None:
        """Apply changed settings to the same connection."""
        self.server = server
        self._answering.server = server
        if self._connection is not None:
            self._connection.retune(server)

    async def retire(self) -> None:
        """Close after running calls have ended, or after GRACE_SECONDS."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._idle.wait()
        await self.close()

    async def _run_on_connection(
        self, work: Callable[[McpConnection], Awaitable[T]], caller: ToolCaller | None
    ) -> T:
        connection = await self._ensure_connected()
        self._busy += 1
        self._idle.clear()
        if caller is not None:
            self._answering.begin(caller)
        try:
            return await work(connection)
        finally:
            if caller is not None:
                self._answering.end(caller)
            self._busy -= 1
            if not self._busy:
                self._idle.set()
            self._used_at = self._world.clock.monotonic()

    async def _ensure_connected(self) -> McpConnection:
        async with self._connecting:
            if self._connection is not None:
                return self._connection
            if left := self._backoff.left_seconds:
                message = f"MCP server {self.server.name} is reconnecting, try again in {left:.0f}s"
                raise Unreachable(message, retryable=True)
            attempt = 0
            while self._connection is None:
                try:
                    self._connection = await self._connect_once()
                except ServerFault as fault:
                    attempt += 1
                    # A server may be slow to start.
                    if isinstance(fault, CallTimeout | ConnectionLost) and attempt < ATTEMPTS:
                        await self._world.clock.sleep(2.0 ** (attempt - 1))
                        continue
                    if not isinstance(fault, NeedsLogin):
                        self._backoff.record_failure()
                    raise
            self._backoff.record_success()
            return self._connection

    async def _connect_once(self) -> McpConnection:
        ready: asyncio.Future[McpConnection] = asyncio.get_running_loop().create_future()
        self._ended = None
        self._release = asyncio.Event()
        self._owner = asyncio.ensure_future(self._own(ready, self._release))
        try:
            async with asyncio.timeout(self.server.connect_timeout):
                return await asyncio.shield(ready)
        except TimeoutError:
            await self.close(patience=0)
            seconds = self.server.connect_timeout
            message = f"MCP server {self.server.name} did not answer within {seconds:g}s"
            raise Unreachable(message, retryable=True) from None
        except asyncio.CancelledError:
            await self.close(patience=0)
            raise

    async def _own(self, ready: asyncio.Future[McpConnection], release: asyncio.Event) -> None:
        """Open and close one connection in the same task."""
        try:
            async with self._open(self._answering, self._changed.set) as connection:
                self._seen(self.server, await connection.listing())
                ready.set_result(connection)
                await self._serve(connection, release)
        except Exception as error:
            self._ended = _fault(self.server, error)
            if not ready.done():
                ready.set_exception(self._ended)
            elif not release.is_set():
                log.warning("MCP connection lost", extra={"server": self.server.name})
        finally:
            self._connection = None
            if not ready.done():
                ready.cancel()

    async def _serve(self, connection: McpConnection, release: asyncio.Event) -> None:
        """Serve the connection until it is released: refresh changed listings and ping an idle
        server."""
        begun = self._used_at = last_seen = self._world.clock.monotonic()
        while not release.is_set():
            waits = [asyncio.ensure_future(each.wait()) for each in (release, self._changed)]
            try:
                timeout = min(self._seconds_left(begun), self.server.keepalive_interval)
                await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            if self._changed.is_set() and not release.is_set():
                self._changed.clear()
                with contextlib.suppress(ServerFault):
                    self._seen(self.server, await connection.listing())
            elif self._seconds_left(begun) == 0 and not self._busy:
                return
            elif not self._busy:
                quiet = self._world.clock.monotonic() - max(last_seen, self._used_at)
                if quiet >= self.server.keepalive_interval:
                    await connection.ping()
                    last_seen = self._world.clock.monotonic()

    def _seconds_left(self, begun: float) -> float:
        """Return the seconds until idle timeout or maximum lifetime."""
        server = self.server
        idle_end = self._used_at + (server.idle_timeout_seconds or inf)
        end = min(idle_end, begun + (server.max_lifetime_seconds or inf))
        left = max(0.0, end - self._world.clock.monotonic())
        return max(left, 1.0) if self._busy else left

    async def close(self, *, patience: float = PATIENCE_SECONDS) -> None:
        owner, self._owner = self._owner, None
        self._connection = None
        self._release.set()
        if owner is None or owner.done():
            return
        done, _ = await asyncio.wait((owner,), timeout=patience)
        if not done:
            owner.cancel()
            await asyncio.wait((owner,), timeout=PATIENCE_SECONDS)


def _fault(server: McpServer, error: Exception) -> ServerFault:
    from hermes.mcp.connection import translate_error

    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        why = error.strerror or str(error)
        return Unreachable(f"MCP server {server.name} cannot be started: {why}.")
    return translate_error(server, error)
