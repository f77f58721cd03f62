"""Wakes one who waits, for as little as that can cost: it is rung for every word of an answer."""

from __future__ import annotations

import asyncio


class Bell:
    """Rung while nobody waits, it ends the next wait at once. One waiter at a time, and all in
    the loop in which the first has waited."""

    def __init__(self) -> None:
        self._is_rung = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self._is_rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def hush(self) -> None:
        """Whatever it was rung for is done."""
        self._is_rung = False

    async def wait(self) -> None:
        """Until it is rung, which is forgotten then."""
        if not self._is_rung:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._is_rung = False
