"""Time in tests: limits that run out when a test says so, and promises in seconds that hold on a
busy machine too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from hermes.core.world import SystemClock

TRIES = 5


class Late(AssertionError):
    """Something took longer than was promised, which may be the fault of the machine."""


def check_in_time(took: float, promised: float) -> None:
    if took >= promised:
        raise Late(f"{took:.2f} s, and {promised} s are promised")


class Try:
    """Is forgiven for being late, unless it is the last one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.in_time = False

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.in_time = kind is None
        return kind is Late and self.number < TRIES


def tries() -> Iterator[Try]:
    """What is late now and then is late by chance; what is promised comes true at least once. To
    be used as `for one in tries(): with one: …`."""
    for number in range(1, TRIES + 1):
        one = Try(number)
        yield one
        if one.in_time:
            return


def tried_until_in_time(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The same for a whole test, which has a folder of its own in each try."""

    @wraps(test)
    async def trying(tmp_path: Path, **given: Any) -> None:
        for one in tries():
            folder = tmp_path / str(one.number)
            folder.mkdir()
            with one:
                await test(tmp_path=folder, **given)

    return trying


def leap(seconds: float) -> None:
    """Timers of the running event loop go off as if so much time had passed at once. A limit that
    is far away and is leapt to runs out where the test wants it, however slow the machine is."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]


class LeapingClock(SystemClock):
    """Time as it is; where it leaps, the timers of the loop do it too."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        return super().now() + self._ahead

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    def leap(self, seconds: float) -> None:
        self._ahead += seconds
        leap(seconds)
