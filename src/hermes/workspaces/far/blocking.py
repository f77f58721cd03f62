"""Runs async code for callers outside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


def run_blocking(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Block until the work is done, in its own loop and thread, and raise its errors. Nothing that
    it leaves behind may belong to that loop."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="blocking start")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
