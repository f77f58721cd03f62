"""Virtual time and seeded randomness for tests."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hermes.core.world import Clock, World, no_kill_point

T = TypeVar("T")

START = 1_750_000_000.0  # 2025-06-15 15:06:40 UTC
MOST_ROUNDS = 100_000
LOOKS = 10


class VirtualClock:
    """A Clock that stands still. `advance` moves it and wakes sleepers in order, each at its own
    time; `run_until` moves it as far as some work needs.

    `settle_seconds` is how much real time without activity counts as idle. 0 is right for code that
    only awaits; use a few hundredths where threads, files or sockets take part, because the loop
    cannot see that they are still busy."""

    def __init__(self, start: float = START, *, settle_seconds: float = 0.0) -> None:
        self._started = start
        self._passed = 0.0
        self._settle_seconds = settle_seconds
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._started + self._passed

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._passed + seconds, self._count, woken))
        await woken

    @property
    def next_wake(self) -> float | None:
        """Seconds until the next sleeper is due; None without sleepers."""
        self._forget_cancelled()
        return self._sleepers[0][0] - self._passed if self._sleepers else None

    async def advance(self, seconds: float) -> None:
        """Let time pass. A woken task runs, and may sleep again, before time moves on."""
        target = self._passed + seconds
        await self.settle()
        while self._wake_next(target):
            await self.settle()
        self._passed = max(self._passed, target)

    async def run_until(self, work: Awaitable[T]) -> T:
        """The result of `work`; time jumps to the next sleeper whenever the loop is idle."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self.settle()
                if not task.done() and not self._wake_next(None):
                    await asyncio.wait({task}, timeout=0.001)
        finally:
            task.cancel()
            await asyncio.wait({task})
        return task.result()

    async def settle(self) -> None:
        """Return when every task waits for something."""
        loop = asyncio.get_running_loop()
        while True:
            for _ in range(MOST_ROUNDS):
                await asyncio.sleep(0)
                if not _something_is_ready(loop):
                    break
            if not self._settle_seconds or not await self._is_active(loop):
                return

    async def _is_active(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether anything happens within `settle_seconds`. The time is split into several checks
        of the loop, because a busy machine may not run it in between."""
        before = self._count
        for _ in range(LOOKS):
            await asyncio.sleep(self._settle_seconds / LOOKS)
            if self._count != before or _something_is_ready(loop):
                return True
        return False

    def _wake_next(self, target: float | None) -> bool:
        """Wake the next sleeper, unless it is due after the target."""
        self._forget_cancelled()
        if not self._sleepers or (target is not None and self._sleepers[0][0] > target):
            return False
        due, _, woken = heapq.heappop(self._sleepers)
        self._passed = max(self._passed, due)
        woken.set_result(None)
        return True

    def _forget_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)


def _something_is_ready(loop: asyncio.AbstractEventLoop) -> bool:
    """asyncio has no public API for this; the callback queue is the same in all versions."""
    return bool(getattr(loop, "_ready", ()))


def seeded_world(
    seed: int | str, clock: Clock | None = None, kill_point: Callable[[str], None] = no_kill_point
) -> World:
    """A deterministic world. Time is virtual unless a clock is given."""
    return World(clock=clock or VirtualClock(), chance=random.Random(seed), kill_point=kill_point)
