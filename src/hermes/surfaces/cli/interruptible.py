"""How a command waits for its work: Ctrl+C ends it, at whatever moment it comes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, which misses a signal that comes in the moment before its loop sleeps."""
    return asyncio.run(_awake(work))


async def _awake(work: Coroutine[Any, Any, T]) -> T:
    # A loop that minds one signal is woken by all of them. Signals belong to the main thread, and
    # not every system has them.
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, lambda: None)
    return await work
