"""Makes replayed work wait for its recorded place in the order of events."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from hermes.core.errors import ProviderError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    DurableEvent,
    EffectDecided,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
)
from hermes.core.world import World
from hermes.providers.recorded.frames import RecordedExchange
from hermes.replay.driver import Driver
from hermes.replay.expected_events import Divergence, ExpectedEvents
from hermes.replay.inputs import is_lost, stopped_in_call
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


OVER = "The replay is over."

Done = ToolFinished | ApprovalAsked | QuestionAsked | EffectDecided


class Diverged(Exception):
    """The session has left its record; whoever wants a reply asks somebody else."""


class SyncPoints:
    """For one process of the record. `differing` is the first request that was another one, where
    that is allowed; `requests` counts those that were compared."""

    def __init__(
        self, score: ExpectedEvents, start: int, *, requests_may_differ: bool = False
    ) -> None:
        self.clock = ReplayClock(self.sleep)
        self.requests = 0
        self.differing: Divergence | None = None
        self.conductor: Driver | None = None
        self._score = score
        self._start = start
        self._requests_may_differ = requests_may_differ

    async def asks(self, recorded: RecordedExchange | None, url: str, body: bytes) -> None:
        """See `player.Stage`. What is asked is compared with what was asked then."""
        self.check()
        if recorded is None:
            await self._score.rest()
            await self._has_open_request(body)
            return
        self._score.on_booking(recorded.body == body)
        if recorded.body == body:
            self.requests += 1
        elif self._requests_may_differ:
            self.requests += 1
            self.differing = self.differing or self._score.other_request(recorded.body, body)
        else:
            await self._diverge(recorded.body, body)
        await self._score.rest()
        self.check()

    async def left_here(self) -> None:
        self._stop_if_stopped()
        await self._score.hang()

    def passes(self, seconds: float) -> None:
        self.clock.branch().spend(seconds)

    async def sleep(self, seconds: float) -> None:
        """A question lasts until its answer, or until its time was up; all other waits take no
        time at all."""
        if self.conductor is not None and self.conductor.has_question:
            while self._score.is_driven and not self._is_time_up():
                await self._score.changed()
            return
        await self._score.rest()
        if self._stop_if_stopped():
            await self._score.hang()
        self.passes(seconds)
        await asyncio.sleep(0)

    async def next_of(self, call_id: str) -> Done | None:
        """What a running call does next, once its turn has come; None when there is no record."""
        while self._score.is_driven:
            due = self._score.due
            if isinstance(due, Done) and _call_of(due) == call_id and not self._is_lost(due):
                return due
            await self._score.changed()
        if not self._score.is_free:
            await self._score.hang()
        return None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Inside the block something real is done, which may take its time."""
        if self.conductor is not None:
            self.conductor.working += 1
        try:
            yield
        finally:
            if self.conductor is not None:
                self.conductor.working -= 1

    @property
    def due(self) -> DurableEvent | None:
        return self._score.due if self._score.is_driven else None

    async def _has_open_request(self, body: bytes) -> None:
        """The tape has no more: the call was stopped before anything came, or made without one."""
        self.check()
        if not self._stop_if_stopped():
            await self._diverge(b"", body)
        await self._score.hang()
        self.check()

    async def _diverge(self, recorded: bytes, body: bytes) -> None:
        self._score.diverge_at_request(recorded, body)
        if not self._score.is_free:
            await self._score.hang()
        self.check()

    def check(self) -> None:
        """Nobody gets an answer who is not led any more."""
        if self._score.is_free:
            raise Diverged
        if not self._score.is_driven:
            raise ProviderError(OVER)

    def _stop_if_stopped(self) -> bool:
        score = self._score
        if not score.is_driven or not stopped_in_call(score.events, score.place):
            return False
        if self.conductor is not None:
            self.conductor.interrupt()
        return True

    def _is_lost(self, due: DurableEvent) -> bool:
        """A call that was stopped while it ran never came to its end."""
        played = self._score.events[self._start : self._score.place]
        started = {event.call_id for event in played if isinstance(event, ToolStarted)}
        return is_lost(due, started)

    def _is_time_up(self) -> bool:
        due = self._score.due
        return isinstance(due, ApprovalAnswered | QuestionAnswered) and due.by == "time"


def _call_of(event: Done) -> str:
    return event.result.call_id if isinstance(event, ToolFinished) else event.call_id
