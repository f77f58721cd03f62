"""A wake-up signal for one waiter, cheap enough to send for every word of a reply."""

from __future__ import annotations

import asyncio


class Wakeup:
    """A signal that comes before the wait ends the next wait at once. Only one task waits at a
    time, always in the same event loop."""

    def __init__(self) -> None:
        self._is_set = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        self._is_set = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def clear(self) -> None:
        self._is_set = False

    async def wait(self) -> None:
        """Wait for the signal, then clear it."""
        if not self._is_set:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._is_set = False
