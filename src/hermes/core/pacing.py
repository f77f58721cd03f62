"""Lets a crowd through a few at a time, so that nobody else waits long for the event loop."""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 8


class Pacer:
    """Sessions that all go on in the same instant (one commit wakes many) would keep the loop busy
    until the last of them has done its work. `turn` lets a few pass in each round of the loop."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_counting = False

    async def turn(self) -> None:
        """Returns at once unless others have had this round already."""
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._next_round)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _next_round(self) -> None:
        self._left = self._at_once
        while self._waiting and self._left > 0:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._left -= 1
        self._is_counting = bool(self._waiting)
        if self._is_counting:
            asyncio.get_running_loop().call_soon(self._next_round)
