"""Runs a coroutine so that Ctrl+C always interrupts it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, which misses a signal that arrives just before its loop sleeps."""
    return asyncio.run(_awake(work))


async def _awake(work: Coroutine[Any, Any, T]) -> T:
    # A loop with one signal handler is woken by every signal. Handlers need the main thread, and
    # not every system has them.
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, lambda: None)
    return await work
