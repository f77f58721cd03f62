"""Waiting that ends when a person stops the turn."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TurnStopped(Exception):
    """The person stopped the turn. Not an error, so not part of `errors`."""


class Stop(asyncio.Event):
    """A person's request to stop a turn. The future `wished` completes when it is set, so waiting
    for it needs no extra task."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        super().set()
        if not self.requested.done():
            self.requested.set_result(None)


async def run_unless_stopped(stop: Stop, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or Stopped as soon as `stop` is set. The work is cancelled and has
    ended when this raises."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task, stop.requested), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TurnStopped
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
