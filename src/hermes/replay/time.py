"""The time of a replay: moments from the record, spans as the work that was recorded took them."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from hermes.core.world import World
from hermes.replay.recording import RecordedLine


class ClockBranch:
    """The time of one task and of the tasks that it starts, as long as they look at no clock."""

    def __init__(self, now: float) -> None:
        self.now = now

    def spend(self, seconds: float) -> None:
        self.now += seconds


class ReplayClock:
    """`at` is the moment of the record that is being written. Tasks that run side by side each
    have a time of their own, so that what one does takes nothing of the time of another."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.at = 0.0
        self._sleep = sleep
        self._newest: ContextVar[ClockBranch | None] = ContextVar("branch", default=None)
        self._branches: WeakKeyDictionary[asyncio.Task[object], ClockBranch] = WeakKeyDictionary()

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        task = _running_task()
        if task is None:
            # A thread of the journal, which only wants to know how long it is alive.
            return 0.0
        branch = self._branches.get(task)
        if branch is None:
            branch = self._branches[task] = ClockBranch(self.branch().now)
            self._newest.set(branch)
        return branch.now

    def branch(self) -> ClockBranch:
        """The time that the running task works in."""
        task = _running_task()
        own = self._branches.get(task) if task is not None else None
        found = own or self._newest.get()
        if found is None:
            found = ClockBranch(0.0)
            self._newest.set(found)
        return found

    async def sleep(self, seconds: float) -> None:
        await self._sleep(seconds)


def _running_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class ReplayWorld(World):
    """Gives the names that were given then, each kind in its order, from line `start` on; but for
    those that somebody else gave."""

    def __init__(
        self,
        clock: ReplayClock,
        lines: Sequence[RecordedLine],
        start: int,
        others: Iterable[str] = (),
    ) -> None:
        super().__init__(clock=clock, chance=random.Random(0))
        self._before, self._text = _text(lines[:start]), _text(lines[start:])
        self._names: dict[str, list[str]] = {}
        self._others = frozenset(others)

    def new_id(self, prefix: str, digits: int = 12) -> str:
        if prefix not in self._names:
            form = re.compile(rf"\b{re.escape(prefix)}_[0-9a-f]{{{digits}}}\b")
            old = self._others.union(form.findall(self._before))
            found = dict.fromkeys(form.findall(self._text))
            self._names[prefix] = [name for name in found if name not in old]
        names = self._names[prefix]
        return names.pop(0) if names else super().new_id(prefix, digits)


def _text(lines: Sequence[RecordedLine]) -> str:
    return "\n".join(f"{line.turn_id} {bytes(line.body).decode()}" for line in lines)
