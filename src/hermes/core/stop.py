"""Waiting that ends at once when a person says stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):
    """The person ended the turn. Not an error, so not in the tree of errors."""


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or Stopped as soon as `stop` is set; then the work is cancelled and
    has ended when this raises."""
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Stopped
    finally:
        stopping.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
