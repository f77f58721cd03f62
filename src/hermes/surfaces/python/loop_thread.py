"""A thread with an event loop, for programs that are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from hermes.core.errors import UsageError

T = TypeVar("T")

# The thread whose work calls a callback now. Threads that callbacks start by `asyncio.to_thread`
# inherit it.
_inside: ContextVar[LoopThread | None] = ContextVar("hermes_agent_thread", default=None)


class LoopThread:
    """Starts on first use; `close` ends it. Any other thread may submit work."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def is_calling(self) -> bool:
        """Whether a callback of this thread is running here."""
        return _inside.get() is self

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work and return its result; KeyboardInterrupt cancels it. Raise UsageError in a
        callback of the same thread, which would wait for itself."""
        if self.is_calling:
            work.close()
            raise UsageError(
                "A callback cannot wait for its own agent; call it after the turn, or use `steer`."
            )
        future = asyncio.run_coroutine_threadsafe(self._marked(work), self._ensure_started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Start the work without waiting for it."""
        asyncio.run_coroutine_threadsafe(self._marked(work), self._ensure_started())

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    async def _marked(self, work: Coroutine[Any, Any, T]) -> T:
        _inside.set(self)
        return await work

    def _ensure_started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="hermes-agent", daemon=True
                )
                self._thread.start()
            return self._loop
