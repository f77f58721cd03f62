"""Begins a coroutine at once, up to its first wait, and leaves the rest to a task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


def eager_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """What the work does before it waits has been done when this returns; None when it is over.
    A task of its own would begin later, when others may have gone on."""
    try:
        first = work.send(None)
    except StopIteration:
        return None
    return asyncio.ensure_future(_finish(_Rest(work, first)))


class _Rest:
    """The part of a coroutine after its first wait."""

    def __init__(self, work: Coroutine[Any, Any, None], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        waits_for = self._waits_for
        while True:
            try:
                value = yield waits_for
            except BaseException as error:
                step = _thrown(self._work, error)
            else:
                step = _sent(self._work, value)
            if step is _OVER:
                return
            waits_for = step


_OVER = object()


def _sent(work: Coroutine[Any, Any, None], value: Any) -> Any:
    try:
        return work.send(value)
    except StopIteration:
        return _OVER


def _thrown(work: Coroutine[Any, Any, None], error: BaseException) -> Any:
    try:
        return work.throw(error)
    except StopIteration:
        return _OVER


async def _finish(rest: _Rest) -> None:
    await rest
