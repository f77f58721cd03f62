"""Async work for callers that cannot wait in the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any


def done_now(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Blocks until the work is done, in a loop and a thread of its own; what it raises, this does.
    Nothing that it leaves behind may belong to that loop."""
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
