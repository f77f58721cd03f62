"""Background tasks of a chat (side questions, commands), and the end of its session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.commands.registry import StartWork
from hermes.core.commands import End, Interrupt
from hermes.core.errors import HermesError
from hermes.core.session import Session

LEAVE_SECONDS = 5.0
STOP_SECONDS = 0.05


async def stop(session: Session, reason: str) -> None:
    """Stop the running turn and all queued ones, and end the session."""
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            while session.busy:
                await session.send(Interrupt())
                await asyncio.sleep(STOP_SECONDS)
        await session.send(End(reason=reason))
    except (TimeoutError, HermesError):
        # Unfinished work continues when the session is resumed.
        pass


async def first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


FAULT = "Internal error: the background work failed; see `hermes logs errors`."

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Runs background work. `report` gets the result of each task when it ends."""

    def __init__(self, report: Callable[[str, StartWork], None]) -> None:
        self._report = report
        self._running: dict[asyncio.Task[None], StartWork] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """What runs, oldest first."""
        return tuple(work.name for work in self._running.values())

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The sessions that work."""
        return tuple(work.task_id for work in self._running.values() if work.task_id)

    def begin(self, work: StartWork, group: asyncio.TaskGroup) -> None:
        async def run() -> None:
            try:
                message = await work.work()
            except HermesError as error:
                message = str(error)
            except Exception:
                log.exception("background work failed")
                message = FAULT
            finally:
                running = self._running.items()
                self._running = {task: each for task, each in running if each != work}
            self._report(message, work)

        self._running[group.create_task(run())] = work

    def stop(self) -> None:
        """Stop the tasks that can be stopped early."""
        for work in self._running.values():
            if work.stop is not None:
                work.stop.set()

    def cancel(self) -> None:
        """Stop all tasks. Those that can be stopped early report what they have."""
        self.stop()
        for task, work in tuple(self._running.items()):
            if work.stop is None:
                task.cancel()
                del self._running[task]

    async def leave(self) -> None:
        """Cancel everything and wait for it."""
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
