"""How fast a scripted model speaks, in the hands of a test."""

from __future__ import annotations

import asyncio
import threading

from hermes.core.world import SystemClock

LOOK_SECONDS = 0.005


class HeldClock(SystemClock):
    """The clock of a model server: waits take their time, and once a test has pulled they end only
    as far as it lets them. A slow test is then as far behind as it wants to be."""

    def __init__(self) -> None:
        self._held = False
        self._allowed = threading.Semaphore(0)

    def hold(self) -> None:
        self._held = True

    def let(self, waits: int) -> None:
        """So many more waits may end."""
        self._allowed.release(waits)

    def release(self) -> None:
        self._held = False

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        while self._held and not self._allowed.acquire(blocking=False):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
