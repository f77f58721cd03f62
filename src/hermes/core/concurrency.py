"""Async primitives: stopping a turn, waiting and waking, threads, and sharing the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, Literal, TypeVar

T = TypeVar("T")


class TurnStopped(Exception):
    """The person stopped the turn. Not an error, so not part of `errors`."""


class Stop(asyncio.Event):
    """A person's request to stop a turn. The future `requested` completes when it is set, so that
    waiting for it needs no extra task."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        super().set()
        if not self.requested.done():
            self.requested.set_result(None)


async def run_unless_stopped(
    stop: Stop, work: Coroutine[Any, Any, T], *, grace_seconds: float = 0.0
) -> T:
    """Return the result of `work`. Raise TurnStopped once `stop` is set and the grace is over; the
    work is cancelled and has ended by then."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task, stop.requested), return_when=asyncio.FIRST_COMPLETED)
        if grace_seconds and not task.done():
            await asyncio.wait((task,), timeout=grace_seconds)
        if task.done():
            return task.result()
        raise TurnStopped
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def wait_for_first(
    ended: asyncio.Future[Any], *, timeout: float | None, stop: asyncio.Event | None = None
) -> Literal["ended", "timeout", "stopped"]:
    """Return which came first: the end of the work, the timeout, or the stop signal. The work may
    still run."""
    waits: set[asyncio.Future[Any]] = {ended}
    stopping = asyncio.ensure_future(stop.wait()) if stop else None
    if stopping:
        waits.add(stopping)
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if stopping:
            stopping.cancel()
    if ended.done():
        return "ended"
    return "stopped" if stop and stop.is_set() else "timeout"


def start_daemon_thread(work: Callable[[], T]) -> Future[T]:
    """Run a blocking call in a daemon thread, which does not block exit even if it hangs."""
    done: Future[T] = Future()
    # A caller that is cancelled leaves the future alone, so that the thread can finish it.
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return done


class Wakeup:
    """An event that one task waits for, always in the same event loop. After a signal that came
    while no task waited, the next `wait` returns at once."""

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


AT_ONCE = 8


class Pacer:
    """Lets a few sessions run per round of the event loop. One commit may wake many at once, and
    without this limit they would block the loop until the last has run."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_counting = False

    async def wait(self) -> None:
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
