"""Drives a replay: sends the recorded inputs at the recorded points."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

from hermes.core.caps import Caps
from hermes.core.commands import Answer, Command, Compact, Interrupt, Rewind, Say, Steer
from hermes.core.errors import HermesError
from hermes.core.events import (
    ApprovalAnswered,
    DurableEvent,
    ModelCalled,
    QuestionAnswered,
    Record,
)
from hermes.core.messages import Usage
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.inputs import command_of, stops


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


class ReplayRecorder(Recorder):
    """After the end of its part it writes nothing and lets nobody go on. `books` is called when a
    call is about to be booked."""

    def __init__(
        self,
        score: ExpectedEvents,
        noted: Callable[[DurableEvent], None],
        books: Callable[[], None],
        *given: Any,
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self._score = score
        self._tell = noted
        self._books = books

    def note(self, *events: DurableEvent) -> None:
        for event in events:
            if self._score.is_closed or self._score.was_killed:
                return
            seen = self.redactor.durable(event)
            super().note(seen)
            self._tell(seen)

    async def commit(self, *events: DurableEvent) -> tuple[Record, ...]:
        self.note(*events)
        if self._score.is_closed:
            return ()
        records = await super().commit()
        await self._score.rest()
        return records

    async def book(self, call: ModelCalled, least: Usage, caps: Caps) -> ModelCalled:
        if self._score.is_closed:
            return call
        self._books()
        booked = await super().book(call, least, caps)
        if not self._score.asks_on():
            await self._score.rest()
        return booked

    def insert(self, event: DurableEvent) -> None:
        """Note an event that is not compared."""
        super().note(event)

    async def flush(self) -> None:
        """Write what is noted, whatever comes after it."""
        await super().commit()


log = logging.getLogger(__name__)

# Nothing in a replay takes this long but real tools.
PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 0.005
_NAP_SECONDS = 0.05
_QUICK_LOOKS = 20
# Answers that no person gave.
_NOBODY = ("time", "stop", "restart")
BETWEEN_TURNS = Rewind | Compact


class Driver:
    """For one process that worked on the session: from `start` up to `end` of the score. `working`
    counts real tools that are under way."""

    def __init__(self, score: ExpectedEvents, start: int, end: int) -> None:
        self.working = 0
        self._score = score
        self._stops = stops(score.events, start, end)
        self._session: Session | None = None
        self._recorder: ReplayRecorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        score.open(start, end)

    @property
    def has_question(self) -> bool:
        return self._session is not None and bool(self._session.transcript.asked)

    def recorder(self, *given: Any, **named: Any) -> ReplayRecorder:
        """In place of `Recorder(…)`."""
        self._recorder = ReplayRecorder(
            self._score, self.on_noted, self._follow_to_booking, *given, **named
        )
        return self._recorder

    async def drive(self, session: Session) -> None:
        """Returns when this process's part is over, or the session left its record and is to be
        left too. All that it noted is then written."""
        self._session = session
        self._follow()
        resumed = -1
        while not self._score.is_over and self._score.is_driven:
            place = self._score.place
            if not session.busy and resumed != place:
                resumed = place
                session.resume()
            await self._step(place)
        if self._score.is_free:
            await session.wait_until_idle()
        if self._recorder is not None and self._score.divergence is None:
            await self._recorder.flush()

    async def stop(self) -> None:
        """Everybody who waits is let go, and nothing is kept of what they do then."""
        self._score.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def interrupt(self) -> None:
        """The person stops the turn."""
        self._give(Interrupt())

    def on_noted(self, event: DurableEvent) -> None:
        if self._score.is_driven and self._score.take(event):
            self._follow()

    def _follow_to_booking(self) -> None:
        self._follow(booking=True)

    def _follow(self, *, booking: bool = False) -> None:
        """Whatever from outside is due now. It must come before the session goes on, so it is
        begun right here and not by a task. What came between the moment at which a turn looks for
        messages and the booking of its next call was not seen by the turn, so it waits for that."""
        while self._session is not None and self._score.is_driven:
            place, due = self._score.place, self._score.due
            if due is None:
                return
            if place in self._score.side:
                self._insert(due)
                continue
            if place in self._stops:
                self._stops -= {place}
                self.interrupt()
            command = command_of(due)
            if command is None or isinstance(command, BETWEEN_TURNS):
                return
            if not booking and isinstance(command, Say | Steer) and self._precedes_call(place):
                return
            self._give(command)
            if self._score.place == place:
                return

    def _precedes_call(self, place: int) -> bool:
        """Whether the next that the session itself does is a call of the model."""
        for number in range(place, self._score.end):
            event = self._score.events[number]
            if number not in self._score.side and command_of(event) is None:
                return isinstance(event, ModelCalled)
        return False

    def _insert(self, event: DurableEvent) -> None:
        """Side work is not done again; its calls were booked all the same."""
        assert self._recorder is not None
        self._recorder.insert(event)
        self._score.skip()
        self._begin(self._recorder.flush())

    def _give(self, command: Command) -> None:
        assert self._session is not None
        try:
            self._begin(self._session.send(command))
        except HermesError as error:
            self._miss(str(error))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = eager_task(work)
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("a command of a replay failed", extra={"why": str(error)})

    async def _step(self, place: int) -> None:
        """Until something happens, or has been waited for long enough."""
        due = self._score.due
        if isinstance(due, ApprovalAnswered | QuestionAnswered) and due.by not in _NOBODY:
            words = due.choice if isinstance(due, ApprovalAnswered) else due.text
            in_time = await self._offer(place, Answer(id=due.id, text=words, by=due.by))
        elif due is not None and isinstance(command := command_of(due), BETWEEN_TURNS):
            in_time = await self._offer(place, command)
        else:
            in_time = await self._wait(place)
        if not in_time and self._score.place == place:
            self._miss("")

    async def _offer(self, place: int, command: Command) -> bool:
        """Again and again: nothing tells when the session is ready to take it."""
        for look in range(int(PATIENCE_SECONDS / _LOOK_SECONDS)):
            assert self._session is not None
            if not (isinstance(command, BETWEEN_TURNS) and self._session.busy):
                self._give(command)
            await asyncio.sleep(0 if look < _QUICK_LOOKS else _LOOK_SECONDS)
            if self._score.place != place or not self._score.is_driven:
                return True
        return False

    async def _wait(self, place: int) -> bool:
        """In small waits, which take longer on a machine that is busy with something else."""
        for _ in range(int(PATIENCE_SECONDS / _NAP_SECONDS)):
            with suppress(TimeoutError):
                async with asyncio.timeout(_NAP_SECONDS):
                    await self._score.changed()
                    return True
            if self._score.place != place:
                return True
        return self.working > 0

    def _miss(self, why: str) -> None:
        recorded = bytes(self._score.lines[self._score.place].body)
        self._score.diverge("missing", recorded=recorded, now=why.encode())
