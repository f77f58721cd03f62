"""Shows the background child sessions of a session among its background processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from hermes.core.concurrency import wait_for_first
from hermes.core.delegating import DelegatingProcesses, DelegatingWorkspace
from hermes.core.errors import ToolError
from hermes.core.ports import Processes, ProcessInfo, ProcessNotice, Workspace
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.delegation.background import BackgroundChild, BackgroundChildren

WORKING = "It works."
FINISHED = "It has finished; its result follows as a message."


class OwnerWorkspace(DelegatingWorkspace):
    """A workspace whose background processes include the background child sessions of its
    session, so that every surface lists, reports and stops them like processes."""

    def __init__(self, inner: Workspace, children: ChildProcesses) -> None:
        super().__init__(inner)
        self._children = children

    @property
    def processes(self) -> Processes:
        return self._children

    async def close(self) -> None:
        self._children.forget()
        await super().close()


class ChildProcesses(DelegatingProcesses):
    """Background processes and background child sessions of one session."""

    def __init__(
        self, inner: Workspace, load: Callable[[], BackgroundChildren], session_id: str
    ) -> None:
        super().__init__(inner.processes)
        # Most sessions have no child sessions and never load the code for them.
        self._load = load
        self._is_used = False
        self._session_id = session_id

    @property
    def _background(self) -> BackgroundChildren:
        self._is_used = True
        return self._load()

    @property
    def _owner(self) -> Session | None:
        return self._background.delegations.host.find_session(self._session_id)

    def forget(self) -> None:
        if self._is_used:
            self._background.forget_owner(self._session_id)

    async def list(self) -> tuple[ProcessInfo, ...]:
        found = await self._inner.list()
        if (owner := self._owner) is not None:
            await self._background.adopt(owner)
        return (*found, *map(self._info, self._background.list(self._session_id)))

    async def poll(self, process_id: str) -> ProcessInfo:
        child = self._find(process_id)
        return self._info(child) if child else await self._inner.poll(process_id)

    async def log(self, process_id: str, *, offset: int, limit: int) -> ProcessInfo:
        child = self._find(process_id)
        if child is None:
            return await self._inner.log(process_id, offset=offset, limit=limit)
        return self._info(child)

    async def wait(self, process_id: str, *, timeout: float, stop: asyncio.Event) -> ProcessInfo:
        child = self._find(process_id)
        if child is None:
            return await self._inner.wait(process_id, timeout=timeout, stop=stop)
        ended = asyncio.ensure_future(child.ended.wait())
        try:
            await wait_for_first(ended, timeout=timeout, stop=stop)
        finally:
            ended.cancel()
        return await self.poll(process_id)

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        self._refuse_input(process_id)
        return await self._inner.write(process_id, data)

    async def close(self, process_id: str) -> ProcessInfo:
        self._refuse_input(process_id)
        return await self._inner.close(process_id)

    async def kill(self, process_id: str) -> ProcessInfo:
        if self._find(process_id) is None:
            return await self._inner.kill(process_id)
        return self._info(await self._background.stop(self._session_id, process_id))

    async def notices(self) -> AsyncIterator[ProcessNotice]:
        """Yield notices of both kinds. A result counts as reported once the next is asked for."""
        owner = self._owner
        assert owner is not None, "an open session follows its processes"
        await self._background.adopt(owner)
        inner, seen = self._inner.notices(), set[str]()
        process: asyncio.Future[ProcessNotice] | None = None
        child: asyncio.Future[BackgroundChild] | None = None
        try:
            while True:
                process = process or asyncio.ensure_future(anext(inner))
                child = child or asyncio.ensure_future(
                    self._background.next_finished(self._session_id, seen)
                )
                await asyncio.wait((process, child), return_when=asyncio.FIRST_COMPLETED)
                if process.done():
                    notice, process = process.result(), None
                    yield notice
                elif child.done():
                    ended, child = child.result(), None
                    seen.add(ended.id)
                    yield await self._background.notice(owner, ended)
                    self._background.delegations.host.context.world.kill_point("child.announced")
                    await self._background.mark_reported(self._session_id, ended.id)
        finally:
            for each in (process, child):
                if each is not None:
                    each.cancel()

    def _find(self, process_id: str) -> BackgroundChild | None:
        known = {each.id: each for each in self._background.list(self._session_id)}
        return known.get(process_id)

    def _refuse_input(self, process_id: str) -> None:
        if self._find(process_id) is not None:
            raise ToolError(f"{process_id} is a sub-agent; it takes no input.")

    def _info(self, child: BackgroundChild) -> ProcessInfo:
        is_running = not child.ended.is_set()
        outcome = child.outcome
        failed = bool(child.error) or (outcome is not None and outcome.status != "completed")
        return ProcessInfo(
            id=child.id,
            command=child.goal,
            cwd="",
            pid=0,
            started_at=child.started_at,
            status="running" if is_running else "exited",
            exit_code=None if is_running else int(failed),
            notify=True,
            is_watched=True,
            # Its answer has sources that only a notice can carry.
            output=WORKING if is_running else FINISHED,
        )
