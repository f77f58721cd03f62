"""Limits how many sessions continue per round of the event loop, so that no other task waits
long."""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 8


class Pacer:
    """One commit may wake many sessions at once, which would block the loop until the last has run.
    `turn` lets a few pass per round."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_counting = False

    async def turn(self) -> None:
        """Return at once unless this round is used up."""
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
