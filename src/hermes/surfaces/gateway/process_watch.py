"""Background processes of a chat's session: keeps the session open while they run, and brings what
they report into the chat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.core.errors import HermesError
from hermes.core.events import MessageReceived, Record
from hermes.core.session import Session
from hermes.hosting.request import TurnRequest
from hermes.surfaces.gateway.pending import ChatDeps

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
PROCESS = "process:"

OnNotice = Callable[[str, MessageReceived], None]


class ProcessWatch:
    """Watches the sessions of one chat. `on_notice` gets the session id and the message that a
    process caused."""

    def __init__(self, deps: ChatDeps, on_notice: OnNotice) -> None:
        self._deps = deps
        self._on_notice = on_notice
        self._listeners: dict[str, NoticeListener] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def watch(self, request: TurnRequest) -> None:
        """Watch the session of a request, as long as it is open."""
        session = self._deps.app.find_session(request.session_id)
        if session is None or session.id in self._listeners:
            return
        listener = NoticeListener(session.id, self._on_notice, self._listeners)
        self._listeners[session.id] = listener
        session.attach(listener)

    async def hold(self, request: TurnRequest) -> None:
        """Keep the session open while a process runs in it."""
        session = self._deps.app.find_session(request.session_id)
        if session is None or request.session_id in self._tasks or not await _has_process(session):
            return
        task = asyncio.ensure_future(self._hold(request))
        self._tasks[request.session_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(request.session_id, None))

    async def _hold(self, request: TurnRequest) -> None:
        try:
            async with self._deps.executor.session(request) as session:
                while await _has_process(session):
                    await self._deps.app.context.world.clock.sleep(POLL_SECONDS)
        except HermesError as error:
            log.warning("a session with processes was closed", extra={"why": str(error)})

    async def close(self) -> None:
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class NoticeListener:
    """Finds the messages of processes among the events of a session."""

    def __init__(
        self, session_id: str, on_notice: OnNotice, listeners: dict[str, NoticeListener]
    ) -> None:
        self._session_id = session_id
        self._on_notice = on_notice
        self._listeners = listeners

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, MessageReceived) and event.message.origin.startswith(PROCESS):
            self._on_notice(self._session_id, event)

    def close(self) -> None:
        self._listeners.pop(self._session_id, None)


async def _has_process(session: Session) -> bool:
    processes = await session.workspace.processes.list()
    return any(process.status == "running" for process in processes)
