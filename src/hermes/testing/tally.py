"""A counter that tasks and threads can wait for."""

from __future__ import annotations

import asyncio
import threading


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
        """The same without a loop; raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.count >= count, timeout):
                raise TimeoutError(f"waited for {count}, but counted only {self.count}")
