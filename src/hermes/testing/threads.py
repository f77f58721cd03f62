"""Runs an async context manager in a thread, for code without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

Kept = TypeVar("Kept")


@contextmanager
def running_in_thread(kept: AbstractAsyncContextManager[Kept]) -> Iterator[Kept]:
    """Entered and exited in the thread's own loop. An error while entering is raised here."""
    entered: Future[tuple[Kept, Callable[[], object]]] = Future()

    async def stay() -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        async with kept as value:
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
