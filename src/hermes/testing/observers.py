"""Counters, request observers and effect logs that tests wait for and read."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hermes.testing.request import Request


class WaitableCounter:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []
        self.count = 0

    def add(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()
            due = [entry for entry in self._waiting if entry[0] <= self.count]
            self._waiting = [entry for entry in self._waiting if entry[0] > self.count]
        for _, loop, event in due:
            loop.call_soon_threadsafe(event.set)

    async def reaches(self, count: int) -> None:
        """Waits in the running loop, whichever loop or thread counts."""
        entry = (count, asyncio.get_running_loop(), asyncio.Event())
        with self._changed:
            if self.count >= count:
                return
            self._waiting.append(entry)
        try:
            await entry[2].wait()
        finally:
            with self._changed:
                self._waiting = [other for other in self._waiting if other is not entry]

    def wait(self, count: int, *, timeout: float = 60.0) -> None:
        """Wait without an event loop. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= count, timeout):
                raise TimeoutError(f"waited for {count}, but counted only {self.count}")


Entered = TypeVar("Entered")


@contextmanager
def running_in_thread(manager: AbstractAsyncContextManager[Entered]) -> Iterator[Entered]:
    """Entered and exited in the thread's own loop. An error while entering is raised here."""
    entered: Future[tuple[Entered, Callable[[], object]]] = Future()

    async def stay() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        async with manager as value:
            entered.set_result((value, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()

    def run() -> None:
        try:
            asyncio.run(stay())
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)

    thread = threading.Thread(target=run, name="hermes-testing", daemon=True)
    thread.start()
    value, leave = entered.result()
    try:
        yield value
    finally:
        leave()
        thread.join()


RequestObserver = Callable[["Request"], None]

_observers: list[RequestObserver] = []


@contextmanager
def observe_requests(by: RequestObserver) -> Iterator[None]:
    """Observe requests. `by` is called in the server's thread before the request is
    answered. It should be fast and must not raise."""
    _observers.append(by)
    try:
        yield
    finally:
        _observers.remove(by)


def notify_observers(request: Request) -> None:
    for observe in tuple(_observers):
        observe(request)


class EffectLog:
    """A file to which every real effect appends one line. It survives a crash of the process, and a
    line is written completely or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, name: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")

    def shell(self, name: str) -> str:
        """A shell command with this effect, for a scripted terminal call."""
        return f"echo {shlex.quote(name)} >> {shlex.quote(str(self.path))}"

    def counts(self) -> Counter[str]:
        if not self.path.exists():
            return Counter()
        return Counter(self.path.read_text(encoding="utf-8").splitlines())

    def count(self, name: str) -> int:
        return self.counts()[name]
