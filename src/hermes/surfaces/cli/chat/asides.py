"""Work that goes on beside the conversation of a chat, and is reported when it is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.commands.registry import Begun
from hermes.core.errors import HermesError

FAULT = "A fault of Hermes: this could not be done; see `hermes logs errors`."

log = logging.getLogger(__name__)


class Asides:
    """`report` gets the words of each when it is done, and what it was. `names` is what goes on,
    oldest first."""

    def __init__(self, report: Callable[[str, Begun], None]) -> None:
        self._report = report
        self._running: dict[asyncio.Task[None], Begun] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(begun.name for begun in self._running.values())

    def begin(self, begun: Begun, group: asyncio.TaskGroup) -> None:
        self._running[group.create_task(self._work(begun))] = begun

    def stop(self) -> None:
        """End what can be ended early."""
        for begun in self._running.values():
            if begun.stop is not None:
                begun.stop.set()

    async def leave(self) -> None:
        """Nothing goes on afterwards."""
        tasks = tuple(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self, begun: Begun) -> None:
        try:
            words = await begun.work()
        except HermesError as error:
            words = str(error)
        except Exception:
            log.exception("work beside the conversation failed")
            words = FAULT
        finally:
            self._running = {task: each for task, each in self._running.items() if each != begun}
        self._report(words, begun)
