"""Time, randomness, ids and kill points, passed as arguments and never global."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Protocol

from hermes.core.concurrency import Pacer


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def no_kill_point(_name: str) -> None:
    """The kill point of ordinary runs, which does nothing."""


class World:
    """The sources of nondeterminism of a session."""

    def __init__(
        self,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        kill_point: Callable[[str], None] = no_kill_point,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.chance = chance or random.Random()
        # `kill_point(name)` marks a point where tests kill the process.
        self.kill_point = kill_point
        # Shares the event loop among the sessions of a process.
        self.pacer = Pacer()

    def new_id(self, prefix: str, digits: int = 12) -> str:
        return f"{prefix}_{self.chance.getrandbits(digits * 4):0{digits}x}"

    def new_session_id(self) -> str:
        stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(self.clock.now()))
        return f"{stamp}_{self.chance.getrandbits(24):06x}"
