"""Shares open sessions between their users, and closes those without users."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes.app.app import App
from hermes.app.session_builder import AdaptDeps
from hermes.codec.values import replace
from hermes.core.errors import SessionBusy
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest

# How long a turn waits while another one runs in its session.
SESSION_WAIT_SECONDS = 300.0


class SessionSlot:
    """One session of the pool. `open_lock` protects opening and closing. `turn_lock` is held by a
    turn that must run alone."""

    __slots__ = ("idle_timer", "open_lock", "session", "session_id", "turn_lock", "users")

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.open_lock = asyncio.Lock()
        self.turn_lock = asyncio.Lock()
        self.users = 0
        self.session: Session | None = None
        self.idle_timer: asyncio.TimerHandle | None = None

    async def acquire_turn(self) -> None:
        """SessionBusy when another turn of this process holds the session too long."""
        try:
            async with asyncio.timeout(SESSION_WAIT_SECONDS):
                await self.turn_lock.acquire()
        except TimeoutError as error:
            message = "Another request is using this session; try again later."
            raise SessionBusy(message) from error


class SessionPool:
    """A session without users is closed after `idle_seconds`. `with_tasks` starts the session tasks
    of the app, such as reading the inbox, in each session."""

    def __init__(self, app: App, *, idle_seconds: float = 0.0, with_tasks: bool = False) -> None:
        self._app = app
        self._idle_seconds = idle_seconds
        self._with_tasks = with_tasks
        self._slots: dict[str, SessionSlot] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def open_sessions(self) -> int:
        return sum(slot.session is not None for slot in self._slots.values())

    async def processes(self) -> int:
        """The number of running background processes in open sessions."""
        opened = [slot.session for slot in self._slots.values() if slot.session is not None]
        found = [await session.workspace.processes.list() for session in opened]
        return sum(process.status == "running" for each in found for process in each)

    def acquire(self, session_id: str) -> SessionSlot:
        """Become a user of the session, which need not be open. Each call needs a `release`."""
        slot = self._slots.get(session_id)
        if slot is None:
            slot = self._slots[session_id] = SessionSlot(session_id)
        slot.users += 1
        if slot.idle_timer is not None:
            slot.idle_timer.cancel()
            slot.idle_timer = None
        return slot

    async def open(
        self, slot: SessionSlot, request: SessionRequest, *, adapt: AdaptDeps | None = None
    ) -> Session:
        """The session of the slot, opened if necessary. The caller is a user of the slot and holds
        its `open_lock`. Raises SessionBusy when another process has the session, and NotFound when
        there is none."""
        if slot.session is None:
            # Many sessions that open at once must not block the event loop.
            await self._app.context.world.pacer.wait()
            request = replace(request, keep_id=True)
            slot.session = await self._app.open(request, adapt=adapt)
            if self._with_tasks:
                self._app.start_session_tasks(slot.session)
        return slot.session

    async def release(self, slot: SessionSlot) -> None:
        slot.users -= 1
        if slot.users == 0 and slot.session is not None and self._idle_seconds:
            loop = asyncio.get_running_loop()
            slot.idle_timer = loop.call_later(self._idle_seconds, self._expire, slot)
            return
        await self._close_unused(slot)

    @asynccontextmanager
    async def exclusive(self, session_id: str) -> AsyncIterator[None]:
        """Keep other turns of this process out of the session while the block runs. Raises
        SessionBusy after a timeout."""
        slot = self.acquire(session_id)
        try:
            await slot.acquire_turn()
            try:
                if slot.users == 1:
                    # The session stayed open after its last run.
                    await self._close_session(slot)
                yield
            finally:
                slot.turn_lock.release()
        finally:
            await self.release(slot)

    @asynccontextmanager
    async def pin(self, session_id: str) -> AsyncIterator[None]:
        """Keep this process from opening or closing the session while the block runs. An open
        session processes its inbox at the end."""
        slot = self.acquire(session_id)
        try:
            async with slot.open_lock:
                yield
                if slot.session is not None:
                    await slot.session.check_inbox()
        finally:
            await self.release(slot)

    async def close(self) -> None:
        """Close the sessions without users."""
        for slot in tuple(self._slots.values()):
            if slot.idle_timer is not None:
                slot.idle_timer.cancel()
            await self._close_unused(slot)
        await asyncio.gather(*self._closing)

    def _expire(self, slot: SessionSlot) -> None:
        task = asyncio.ensure_future(self._close_unused(slot))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_unused(self, slot: SessionSlot) -> None:
        if slot.users == 0:
            await self._close_session(slot)
        if slot.users == 0 and slot.session is None and not slot.open_lock.locked():
            self._slots.pop(slot.session_id, None)

    async def _close_session(self, slot: SessionSlot) -> None:
        if slot.session is None:
            return
        session, slot.session = slot.session, None
        # A new user waits at the lock until the session can be opened again.
        async with slot.open_lock:
            await self._app.context.world.pacer.wait()
            await self._app.close_session(session, soon=True)
