"""Makes replayed work wait for its recorded position in the order of events."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from hermes.core.errors import ProviderError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    DurableEvent,
    EffectDecided,
    InnerCallFinished,
    InnerCallIntended,
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
    """The time of a task. Tasks that it starts share it until they read the clock themselves."""

    def __init__(self, now: float) -> None:
        self.now = now

    def spend(self, seconds: float) -> None:
        self.now += seconds


class ReplayClock:
    """A clock with the recorded times. `at` is the time of the record being written. Concurrent
    tasks have separate monotonic times, so that one does not use up the time of another."""

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
            # A journal thread that measures its own lifetime.
            return 0.0
        branch = self._branches.get(task)
        if branch is None:
            branch = self._branches[task] = ClockBranch(self.branch().now)
            self._newest.set(branch)
        return branch.now

    def branch(self) -> ClockBranch:
        """Return the time of the running task."""
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
    """A world with the recorded ids, per prefix and in order, from line `start` on. Ids in `others`
    are skipped."""

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

Finished = ToolFinished | InnerCallFinished
CallEvent = Finished | InnerCallIntended | ApprovalAsked | QuestionAsked | EffectDecided


class Diverged(Exception):
    """The session diverged; the continuing provider must reply."""


class SyncPoints:
    """The sync points of one process. `first_difference` is the first different request where
    differences are allowed; `requests` counts compared requests."""

    def __init__(
        self, expected: ExpectedEvents, start: int, *, requests_may_differ: bool = False
    ) -> None:
        self.clock = ReplayClock(self.sleep)
        self.requests = 0
        self.first_difference: Divergence | None = None
        self.driver: Driver | None = None
        self._expected = expected
        self._start = start
        self._requests_may_differ = requests_may_differ

    async def on_request(self, recorded: RecordedExchange | None, url: str, body: bytes) -> None:
        """Compare a request with the recorded one (see `TapePlayer`)."""
        self.check()
        if recorded is None:
            # Past the tape, the call was interrupted before any answer, or it is new.
            await self._expected.wait_if_over()
            self.check()
            if not self._interrupt_if_recorded():
                await self._diverge(b"", body)
            await self._expected.wait_for_release()
            self.check()
            return
        # The size of a request with masked secrets is not the size that was reserved for.
        self._expected.on_booking(recorded.body == body and not recorded.masked)
        if recorded.body == body:
            self.requests += 1
        elif self._requests_may_differ:
            self.requests += 1
            self.first_difference = self.first_difference or self._expected.other_request(
                recorded.body, body
            )
        else:
            await self._diverge(recorded.body, body)
        await self._expected.wait_if_over()
        self.check()

    async def wait_until_abandoned(self) -> None:
        self._interrupt_if_recorded()
        await self._expected.wait_for_release()

    def advance(self, seconds: float) -> None:
        self.clock.branch().spend(seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait for the recorded answer or timeout while a question is open; other sleeps take no
        real time."""
        if self.driver is not None and self.driver.has_question:
            while self._expected.is_driven:
                due = self._expected.due
                if isinstance(due, ApprovalAnswered | QuestionAnswered) and due.by == "time":
                    break
                await self._expected.wait_for_change()
            return
        await self._expected.wait_if_over()
        if self._interrupt_if_recorded():
            await self._expected.wait_for_release()
        self.advance(seconds)
        await asyncio.sleep(0)

    def earlier_inner_calls(self, call_id: str) -> list[InnerCallIntended]:
        """Return the inner calls of a call that earlier processes intended."""
        earlier = self._expected.events[: self._start]
        return [e for e in earlier if isinstance(e, InnerCallIntended) and e.call_id == call_id]

    async def next_of(
        self, call_id: str, waiting: Collection[str] = ()
    ) -> CallEvent | ToolStarted | None:
        """Wait for the next recorded event of a running call, or for the first event of one of the
        `waiting` calls; None when the session is past the record."""
        while self._expected.is_driven:
            due = self._expected.due
            if isinstance(due, CallEvent | ToolStarted):
                own_id = due.result.call_id if isinstance(due, Finished) else due.call_id
                if own_id in waiting:
                    return due
                played = self._expected.events[self._start : self._expected.position]
                started = {event.call_id for event in played if isinstance(event, ToolStarted)}
                # The result of a call that was interrupted while it ran is not its own.
                if own_id == call_id and not is_lost(due, started):
                    return due
            await self._expected.wait_for_change()
        if not self._expected.is_free:
            await self._expected.wait_for_release()
        return None

    async def wait_until_past(self, event: DurableEvent) -> None:
        """Wait until the session has written this event."""
        while self._expected.is_driven and self._expected.due is event:
            await self._expected.wait_for_change()

    @contextmanager
    def running_tool(self) -> Iterator[None]:
        """Mark a live tool as running, which may take longer than the timeout."""
        if self.driver is not None:
            self.driver.working += 1
        try:
            yield
        finally:
            if self.driver is not None:
                self.driver.working -= 1

    @property
    def due(self) -> DurableEvent | None:
        return self._expected.due if self._expected.is_driven else None

    async def _diverge(self, recorded: bytes, body: bytes) -> None:
        self._expected.diverge_at_request(recorded, body)
        if not self._expected.is_free:
            await self._expected.wait_for_release()
        self.check()

    def check(self) -> None:
        """Raises if the session no longer follows the record."""
        if self._expected.is_free:
            raise Diverged
        if not self._expected.is_driven:
            raise ProviderError(OVER)

    def _interrupt_if_recorded(self) -> bool:
        expected = self._expected
        if not expected.is_driven or not stopped_in_call(expected.events, expected.position):
            return False
        if self.driver is not None:
            self.driver.interrupt()
        return True
