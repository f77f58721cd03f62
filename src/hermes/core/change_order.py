"""Lets the calls of a parallel group change something one after the other, in the order of the
calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hermes.core.effects import CallServer, DeletePath, Effect, ReadPath, WritePath

STALE = (
    "Nothing was changed: another call of this reply changed something that this call had read. "
    "Make the call again."
)


class ChangeOrder:
    """The order of changes in one group of calls whose effects are not known beforehand.

    A call that is about to change something waits until every other call has ended or waits too.
    The first one then continues, alone until it ends."""

    def __init__(self) -> None:
        self._running: set[int] = set()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._holder: int | None = None
        self._freed = asyncio.Event()
        self._changes: list[tuple[int, Effect]] = []

    async def enter(self, number: int) -> None:
        """Start a call; not while another one changes something."""
        while self._holder is not None:
            self._freed.clear()
            await self._freed.wait()
        self._running.add(number)

    def leave(self, number: int) -> None:
        self._running.discard(number)
        if self._holder == number:
            self._holder = None
            self._freed.set()
        self._advance()

    async def wait(self, number: int) -> None:
        """Return when this call may change something."""
        if self._holder == number:
            return
        self._running.discard(number)
        turn = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._advance()
        try:
            await turn
        finally:
            self._waiting.pop(number, None)

    def add_change(self, number: int, effect: Effect) -> None:
        self._changes.append((number, effect))

    def is_stale(self, number: int, read: Iterable[Effect]) -> bool:
        """Whether another call changed something that this one may have read before."""
        changed = [effect for other, effect in self._changes if other != number]
        return any(may_conflict(one, other) for one in read for other in changed)

    def _advance(self) -> None:
        if self._holder is None and not self._running and self._waiting:
            self._holder = min(self._waiting)
            turn = self._waiting[self._holder]
            if not turn.done():
                turn.set_result(None)


def is_server_read(effect: Effect) -> bool:
    return isinstance(effect, CallServer) and not effect.changes


def may_conflict(one: Effect, other: Effect) -> bool:
    """Whether two effects may conflict: the same path, or one inside the other. A command may touch
    any path."""
    if is_server_read(one) and is_server_read(other):
        return False
    if not isinstance(one, ReadPath | WritePath | DeletePath):
        return True
    if not isinstance(other, ReadPath | WritePath | DeletePath):
        return True
    a, b = one.path.rstrip("/") + "/", other.path.rstrip("/") + "/"
    return a.startswith(b) or b.startswith(a)
