"""Background work of a chat: side questions and commands, reported when they finish."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.commands.registry import StartWork
from hermes.core.errors import HermesError

FAULT = "Internal error: this failed; see `hermes logs errors`."

log = logging.getLogger(__name__)


class BackgroundTasks:
    """`report` gets the result of each task when it ends. `names` lists what runs, oldest first."""

    def __init__(self, report: Callable[[str, StartWork], None]) -> None:
        self._report = report
        self._running: dict[asyncio.Task[None], StartWork] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(begun.name for begun in self._running.values())

    def begin(self, begun: StartWork, group: asyncio.TaskGroup) -> None:
        self._running[group.create_task(self._work(begun))] = begun

    def stop(self) -> None:
        """Stop the tasks that can be stopped early."""
        for begun in self._running.values():
            if begun.stop is not None:
                begun.stop.set()

    async def leave(self) -> None:
        """Cancel everything and wait for it."""
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, begun: StartWork) -> None:
        try:
            words = await begun.work()
        except HermesError as error:
            words = str(error)
        except Exception:
            log.exception("background work failed")
            words = FAULT
        finally:
            self._running = {task: each for task, each in self._running.items() if each != begun}
        self._report(words, begun)
