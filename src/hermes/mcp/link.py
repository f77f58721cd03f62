"""The link to one server: opened by the first call, kept, mended, and let go when it rests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

from hermes.core.world import World
from hermes.mcp.answering import Answering
from hermes.mcp.breaker import FAILURES, Backoff, Breaker
from hermes.mcp.faults import Expired, Late, Lost, NeedsLogin, ServerFault, Unreachable
from hermes.mcp.hosting import Caller
from hermes.mcp.listing import Listing
from hermes.mcp.server import Server

if TYPE_CHECKING:
    from hermes.mcp.connection import Connection

log = logging.getLogger(__name__)

ATTEMPTS = 3
GRACE_SECONDS = 5.0
PATIENCE_SECONDS = 8.0
T = TypeVar("T")
Open = Callable[[Answering, Callable[[], None]], AbstractAsyncContextManager["Connection"]]
Seen = Callable[[Server, Listing], None]


class Link:
    """`open_connection` shakes hands; `seen` is told what the server offers whenever that was
    learned. One task owns the connection, whoever calls."""

    def __init__(
        self, server: Server, open_connection: Open, seen: Seen, world: World, folder: str
    ) -> None:
        self.server = server
        self._open = open_connection
        self._seen = seen
        self._world = world
        self._answering = Answering(server, world, folder)
        self._breaker = Breaker(world.clock)
        self._backoff = Backoff(world.clock)
        self._connecting = asyncio.Lock()
        self._turns = asyncio.Semaphore(16 if server.supports_parallel_tool_calls else 1)
        self._owner: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._leave = asyncio.Event()
        self._ended: ServerFault | None = None
        self._changed = asyncio.Event()
        self._busy = 0
        self._resting = asyncio.Event()
        self._resting.set()
        self._used_at = 0.0

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    async def call(
        self, work: Callable[[Connection], Awaitable[T]], caller: Caller | None = None
    ) -> T:
        """Do something over the connection; ServerFault. What the server surely has not looked at
        is tried a second time over a new connection."""
        self._check()
        async with self._turns:
            try:
                result = await self._tried(work, caller)
            except Expired:
                await self._hang_up()
                result = await self._tried(work, caller)
            except (Late, Lost, Unreachable) as fault:
                self._breaker.failed()
                if isinstance(fault, Lost):
                    await self._hang_up()
                    if isinstance(self._ended, NeedsLogin):
                        raise self._ended from fault
                raise
        self._breaker.succeeded()
        return result

    async def listing(self) -> Listing:
        """What the server offers now; connects if need be."""
        return await self.call(lambda connection: connection.listing())

    def retune(self, server: Server) -> None:
        """Other settings for a server that is reached as before."""
        self.server = server
        self._answering.server = server
        if self._connection is not None:
            self._connection.retune(server)

    async def retire(self) -> None:
        """Let go of it once the calls that are under way have ended, or after some seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._resting.wait()
        await self._hang_up()

    async def close(self) -> None:
        await self._hang_up()

    def _check(self) -> None:
        name = self.server.name
        if left := self._breaker.left_seconds:
            words = f"MCP server {name} unavailable ({FAILURES} failures), retry in {left:.0f}s"
            raise Unreachable(words, retryable=True)

    async def _tried(self, work: Callable[[Connection], Awaitable[T]], caller: Caller | None) -> T:
        connection = await self._connected()
        self._busy += 1
        self._resting.clear()
        if caller is not None:
            self._answering.begin(caller)
        try:
            return await work(connection)
        finally:
            if caller is not None:
                self._answering.end(caller)
            self._busy -= 1
            if not self._busy:
                self._resting.set()
            self._used_at = self._world.clock.monotonic()

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._connection is not None:
                return self._connection
            if left := self._backoff.left_seconds:
                words = f"MCP server {self.server.name} is reconnecting, try again in {left:.0f}s"
                raise Unreachable(words, retryable=True)
            try:
                self._connection = await self._attempted()
            except ServerFault as fault:
                if not isinstance(fault, NeedsLogin):
                    self._backoff.failed()
                raise
            self._backoff.succeeded()
            return self._connection

    async def _attempted(self) -> Connection:
        """Some attempts in a row, where a server may just be slow to come up."""
        for attempt in range(ATTEMPTS):
            try:
                return await self._shaken_hands()
            except (Late, Lost):
                if attempt == ATTEMPTS - 1:
                    raise
                await self._world.clock.sleep(2.0**attempt)
        raise AssertionError("there is at least one attempt")

    async def _shaken_hands(self) -> Connection:
        ready: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._ended = None
        self._leave = asyncio.Event()
        self._owner = asyncio.ensure_future(self._own(ready, self._leave))
        try:
            async with asyncio.timeout(self.server.connect_timeout):
                return await asyncio.shield(ready)
        except TimeoutError:
            await self._hang_up(patience=0)
            seconds = self.server.connect_timeout
            words = f"MCP server {self.server.name} did not answer within {seconds:g}s"
            raise Unreachable(words, retryable=True) from None
        except asyncio.CancelledError:
            await self._hang_up(patience=0)
            raise

    async def _own(self, ready: asyncio.Future[Connection], leave: asyncio.Event) -> None:
        """The life of one connection: it is opened and closed in the same task."""
        try:
            async with self._open(self._answering, self._changed.set) as connection:
                self._seen(self.server, await connection.listing())
                ready.set_result(connection)
                await self._attend(connection, leave)
        except Exception as error:
            self._ended = _fault(self.server, error)
            if not ready.done():
                ready.set_exception(self._ended)
            elif not leave.is_set():
                log.warning("a server was lost", extra={"server": self.server.name})
        finally:
            self._connection = None
            if not ready.done():
                ready.cancel()

    async def _attend(self, connection: Connection, leave: asyncio.Event) -> None:
        """Until it is to be let go; what the server says has changed is asked for again. One that
        gives no sign of life is lost, before a call finds that out."""
        begun = self._used_at = heard = self._world.clock.monotonic()
        while not leave.is_set():
            waits = [asyncio.ensure_future(each.wait()) for each in (leave, self._changed)]
            try:
                await asyncio.wait(
                    waits, timeout=self._patience(begun), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                for wait in waits:
                    wait.cancel()
            if self._changed.is_set() and not leave.is_set():
                self._changed.clear()
                with contextlib.suppress(ServerFault):
                    self._seen(self.server, await connection.listing())
            elif self._left(begun) == 0 and not self._busy:
                return
            elif self._is_quiet(max(heard, self._used_at)):
                await connection.ping()
                heard = self._world.clock.monotonic()

    def _is_quiet(self, heard: float) -> bool:
        quiet = self._world.clock.monotonic() - heard
        return not self._busy and quiet >= self.server.keepalive_interval

    def _patience(self, begun: float) -> float:
        left, interval = self._left(begun), self.server.keepalive_interval
        return interval if left is None else min(left, interval)

    def _left(self, begun: float) -> float | None:
        """Seconds until the connection has rested or lived long enough; None for ever."""
        now, server = self._world.clock.monotonic(), self.server
        ends = []
        if server.idle_timeout_seconds:
            ends.append(self._used_at + server.idle_timeout_seconds)
        if server.max_lifetime_seconds:
            ends.append(begun + server.max_lifetime_seconds)
        if not ends:
            return None
        left = max(0.0, min(ends) - now)
        return max(left, 1.0) if self._busy else left

    async def _hang_up(self, *, patience: float = PATIENCE_SECONDS) -> None:
        owner, self._owner = self._owner, None
        self._connection = None
        self._leave.set()
        if owner is None or owner.done():
            return
        done, _ = await asyncio.wait((owner,), timeout=patience)
        if not done:
            owner.cancel()
            await asyncio.wait((owner,), timeout=PATIENCE_SECONDS)


def _fault(server: Server, error: Exception) -> ServerFault:
    from hermes.mcp.connection import fault_of

    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        why = error.strerror or str(error)
        return Unreachable(f"MCP server {server.name} cannot be started: {why}.")
    return fault_of(server, error)
