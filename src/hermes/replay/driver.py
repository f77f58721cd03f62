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
    ReplyAdded,
    TurnEnded,
)
from hermes.core.messages import Usage
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.inputs import command_of, is_interrupted, stops


def eager_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run the coroutine up to its first await before returning; None when it is already done. A
    normal task would start later, after other tasks may have advanced."""
    try:
        first = work.send(None)
    except StopIteration:
        return None

    async def finish() -> None:
        await _Rest(work, first)

    return asyncio.ensure_future(finish())


class _Rest:
    """The rest of a coroutine after its first await."""

    def __init__(self, work: Coroutine[Any, Any, None], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        waits_for = self._waits_for
        with suppress(StopIteration):
            while True:
                try:
                    value = yield waits_for
                except BaseException as error:
                    waits_for = self._work.throw(error)
                else:
                    waits_for = self._work.send(value)


class ReplayEventRecorder(Recorder):
    """A recorder that writes nothing after the end of its part and blocks its callers there.
    `before_booking` is called before a model call is booked."""

    def __init__(
        self,
        expected: ExpectedEvents,
        on_note: Callable[[DurableEvent], None],
        before_booking: Callable[[], None],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._expected = expected
        self._on_note = on_note
        self._before_booking = before_booking

    def note(self, *events: DurableEvent) -> None:
        for event in events:
            if self._expected.is_closed or self._expected.was_killed:
                return
            seen = self._as_recorded(self.redactor.durable(event))
            if seen is not None:
                super().note(seen)
                self._on_note(seen)

    def _as_recorded(self, event: DurableEvent) -> DurableEvent | None:
        """Return the event with the recorded moment of an interrupt: how much of a reply was shown
        by then is an input, and a tape may contain more. None if nothing had been shown."""
        due = self._expected.due if self._expected.is_driven else None
        if not isinstance(event, ReplyAdded) or not is_interrupted(event):
            return event
        if isinstance(due, TurnEnded):
            return None
        if not isinstance(due, ReplyAdded) or not is_interrupted(due):
            return event
        return due if event.message.text.startswith(due.message.text) else event

    async def commit(self, *events: DurableEvent) -> tuple[Record, ...]:
        self.note(*events)
        if self._expected.is_closed:
            return ()
        records = await super().commit()
        await self._expected.wait_if_over()
        return records

    async def book(self, call: ModelCalled, least: Usage, caps: Caps) -> ModelCalled:
        if self._expected.is_closed:
            return call
        self._before_booking()
        booked = await super().book(call, least, caps)
        if not self._expected.has_more_requests():
            await self._expected.wait_if_over()
        return booked

    def insert(self, event: DurableEvent) -> None:
        """Note an event without comparing it."""
        super().note(event)

    async def flush(self) -> None:
        """Write all noted events."""
        await super().commit()


log = logging.getLogger(__name__)

# Only live tools take longer than this in a replay.
TIMEOUT_SECONDS = 3.0
_POLL_SECONDS = 0.005
_WAIT_SECONDS = 0.05
_FAST_POLLS = 20
# Values of `by` for answers that no person gave.
_AUTOMATIC = ("time", "stop", "restart")
BETWEEN_TURNS = Rewind | Compact


class Driver:
    """Replays one process of the session: the expected events from `start` up to `end`. `working`
    counts live tools that are running."""

    def __init__(self, expected: ExpectedEvents, start: int, end: int) -> None:
        self.working = 0
        self._expected = expected
        self._stops = stops(expected.events, start, end)
        self._session: Session | None = None
        self._recorder: ReplayEventRecorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        expected.open(start, end)

    @property
    def has_question(self) -> bool:
        return self._session is not None and bool(self._session.transcript.asked)

    def recorder(self, *args: Any, **kwargs: Any) -> ReplayEventRecorder:
        """Create the recorder of the session. Replaces `Recorder(…)`."""
        self._recorder = ReplayEventRecorder(
            self._expected, self.on_noted, lambda: self._follow(booking=True), *args, **kwargs
        )
        return self._recorder

    async def drive(self, session: Session) -> None:
        """Run until the part of this process is over or the session diverges. Noted events are
        written before it returns, unless the session diverged."""
        self._session = session
        self._follow()
        continued_at = -1
        while not self._expected.is_over and self._expected.is_driven:
            position = self._expected.position
            if not session.busy and continued_at != position:
                continued_at = position
                session.continue_unfinished()
            await self._step(position)
        await self._await_last_request()
        if self._expected.is_free:
            await session.wait_until_idle()
        if self._recorder is not None and self._expected.divergence is None:
            await self._recorder.flush()

    async def stop(self) -> None:
        """Release all waiters. Events that they cause afterwards are dropped."""
        self._expected.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def interrupt(self) -> None:
        """Interrupt the turn, as the user did."""
        self._give(Interrupt())

    def on_noted(self, event: DurableEvent) -> None:
        if self._expected.is_driven and self._expected.take(event):
            self._follow()

    def _follow(self, *, booking: bool = False) -> None:
        """Send the external inputs that are due. They must arrive before the session continues, so
        they start here and not in a task. A message that arrived between a turn's check for
        messages and the booking of its next call was not seen by the turn; it is sent at the
        booking."""
        while self._session is not None and self._expected.is_driven:
            position, due = self._expected.position, self._expected.due
            if due is None:
                return
            if position in self._expected.side:
                # Side work is copied, not replayed, so that spending stays the same.
                assert self._recorder is not None
                self._recorder.insert(due)
                self._expected.skip()
                self._begin(self._recorder.flush())
                continue
            if position in self._stops:
                self._stops -= {position}
                self.interrupt()
            command = command_of(due)
            if command is None or isinstance(command, BETWEEN_TURNS):
                return
            if not booking and isinstance(command, Say | Steer) and self._precedes_call(position):
                return
            self._give(command)
            if self._expected.position == position:
                return

    def _precedes_call(self, position: int) -> bool:
        """Return whether the session's own next event is a model call."""
        for number in range(position, self._expected.end):
            event = self._expected.events[number]
            if number not in self._expected.side and command_of(event) is None:
                return isinstance(event, ModelCalled)
        return False

    def _give(self, command: Command) -> None:
        assert self._session is not None
        try:
            self._begin(self._session.send(command))
        except HermesError as error:
            self._miss(str(error))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.warning("replayed command failed", extra={"why": str(error)})

        if (started := eager_task(work)) is not None:
            self._tasks.add(started)
            started.add_done_callback(done)

    async def _step(self, position: int) -> None:
        """Wait for the next event; report it as missing after a timeout."""
        due = self._expected.due
        if isinstance(due, ApprovalAnswered | QuestionAnswered) and due.by not in _AUTOMATIC:
            text = due.choice if isinstance(due, ApprovalAnswered) else due.text
            in_time = await self._offer(position, Answer(id=due.id, text=text, by=due.by))
        elif due is not None and isinstance(command := command_of(due), BETWEEN_TURNS):
            in_time = await self._offer(position, command)
        else:
            in_time = await self._wait(position)
        if not in_time and self._expected.position == position:
            self._miss("")

    async def _await_last_request(self) -> None:
        """Wait for the request of a process that died after the reply arrived and before it wrote
        an event."""
        for _ in range(int(TIMEOUT_SECONDS / _POLL_SECONDS)):
            if not (self._expected.is_driven and self._expected.has_more_requests()):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _offer(self, position: int, command: Command) -> bool:
        """Send the command repeatedly, since nothing signals when the session accepts it."""
        for poll in range(int(TIMEOUT_SECONDS / _POLL_SECONDS)):
            assert self._session is not None
            if not (isinstance(command, BETWEEN_TURNS) and self._session.busy):
                self._give(command)
            await asyncio.sleep(0 if poll < _FAST_POLLS else _POLL_SECONDS)
            if self._expected.position != position or not self._expected.is_driven:
                return True
        return False

    async def _wait(self, position: int) -> bool:
        """Wait in short steps, so that a busy machine extends the timeout."""
        for _ in range(int(TIMEOUT_SECONDS / _WAIT_SECONDS)):
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_SECONDS):
                    await self._expected.wait_for_change()
                    return True
            if self._expected.position != position:
                return True
        return self.working > 0

    def _miss(self, why: str) -> None:
        recorded = bytes(self._expected.lines[self._expected.position].body)
        self._expected.diverge("missing", recorded=recorded, now=why.encode())
