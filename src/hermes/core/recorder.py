"""Records the events of a session and publishes them to listeners."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple, Protocol

from hermes.codec.values import replace
from hermes.core.caps import Caps
from hermes.core.concurrency import Wakeup
from hermes.core.events import (
    DurableEvent,
    Event,
    LiveEvent,
    MessageReceived,
    ModelCalled,
    Record,
    ReplyAdded,
    SessionOpened,
    ToolProgress,
)
from hermes.core.messages import Usage, UserMessage
from hermes.core.ports import Journal, Lease
from hermes.core.prompt import ReasoningDelta, TextDelta
from hermes.core.secrets import EventRedactor, NoRedaction
from hermes.core.transcript import Transcript, fold
from hermes.core.world import World


class EventListener(Protocol):
    """Receives each record synchronously, so it must be quick and must not fail."""

    def push(self, record: Record) -> None: ...

    def close(self) -> None:
        """Called when no more records follow."""
        ...


class Subscription:
    """A queue of records in order. Deltas that wait for a slow reader are merged, which bounds the
    queue."""

    def __init__(self, leave: Callable[[Subscription], None]) -> None:
        self._waiting: deque[Record] = deque()
        self._news = Wakeup()
        self._closed = False
        self._leave = leave
        self._idle = asyncio.Event()
        self._idle.set()

    def push(self, record: Record) -> None:
        if self._waiting and (merged := _merge(self._waiting[-1].event, record.event)):
            self._waiting[-1] = replace(self._waiting[-1], event=merged)
        else:
            self._waiting.append(record)
        self._news.set()
        self._idle.clear()

    def close(self) -> None:
        """End the queue: the reader still gets what is queued, then its loop ends."""
        self._closed = True
        self._news.set()
        self._idle.set()
        self._leave(self)

    async def wait_until_read(self) -> None:
        """Wait until the reader has handled everything so far and waits for more."""
        await self._idle.wait()

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._idle.set()
            await self._news.wait()
        return self._waiting.popleft()


def _merge(old: Event, new: Event) -> Event | None:
    match old, new:
        case TextDelta(), TextDelta():
            return TextDelta(text=old.text + new.text)
        case ReasoningDelta(), ReasoningDelta():
            return ReasoningDelta(text=old.text + new.text)
        case ToolProgress(), ToolProgress() if old.call_id == new.call_id:
            return new
        case _:
            return None


class Recorder:
    """Writes the events of one open session to the journal. `note` keeps an event for the next
    `commit`, so that events that belong together share one commit. A session that never commits
    stores nothing."""

    def __init__(
        self,
        journal: Journal,
        session_id: str,
        world: World,
        *,
        opening: SessionOpened | None = None,
        lease: Lease | None = None,
        transcript: Transcript | None = None,
        redactor: EventRedactor | None = None,
    ) -> None:
        self.session_id = session_id
        self.redactor = redactor or NoRedaction()
        self.transcript = transcript or Transcript()
        self.lease = lease
        self._opening = opening
        self._journal = journal
        self._world = world
        self._turn_id = self.transcript.turn_id
        self._noted: list[DurableEvent] = []
        self._applied: dict[int, DurableEvent] = {}
        self._committing: dict[int, DurableEvent] = {}
        # Messages as typed, by the id of the redacted event: the model gets what the person wrote.
        self._typed: dict[int, tuple[DurableEvent, MessageReceived]] = {}
        self._write_lock = asyncio.Lock()
        self._listeners: list[EventListener] = []
        # May refuse to open the session: its opening may be out of date by then.
        self.before_opening: Callable[[], None] = lambda: None
        if opening is not None and lease is None:
            # The prompt is needed before the first commit.
            self.transcript.opened = opening
            self.transcript.model, self.transcript.provider = opening.model, opening.provider

    def subscribe(self) -> Subscription:
        subscription = Subscription(self.detach)
        self.attach(subscription)
        return subscription

    def attach(self, listener: EventListener) -> None:
        self._listeners.append(listener)

    def detach(self, listener: EventListener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def begin_turn(self, turn_id: str) -> None:
        """Assign the following events to this turn."""
        self._turn_id = turn_id

    def note(self, *events: DurableEvent) -> None:
        for event in events:
            if isinstance(event, ReplyAdded):
                self._show(self.redactor.rest())
            clean = self.redactor.durable(event)
            match event:
                case MessageReceived(message=UserMessage(origin="user")) if clean is not event:
                    self._typed[id(clean)] = clean, event
            self._noted.append(clean)

    def apply_pending(self) -> None:
        """Apply noted events to the transcript before they are committed, for a prompt that is sent
        only after the commit that books it. Messages wait for their record numbers."""
        for event in self._noted:
            if isinstance(event, MessageReceived) or id(event) in self._committing:
                continue
            if id(event) not in self._applied:
                self._applied[id(event)] = event
                self.transcript.apply(self._live_record(event))

    async def commit(self, *events: DurableEvent) -> tuple[Record, ...]:
        """Write the noted events and these events. They are durable, applied and published when
        this returns, even if the caller is cancelled meanwhile. If it raises, `events` were not
        written and never will be; events that were only noted wait for the next commit."""
        before = len(self._noted)
        self.note(*events)
        own = {id(event): event for event in self._noted[before:]}
        if not self._noted and not self._write_lock.locked():
            return ()
        self._committing.update(own)
        return await asyncio.shield(asyncio.ensure_future(self._commit(own)))

    async def book(self, call: ModelCalled, least: Usage, caps: Caps) -> ModelCalled:
        """Commit a call together with the noted events, and reserve as much as the caps leave.
        Raise BudgetReached when less than `least` is left; the noted events then wait for the next
        commit."""
        flush = self._flush(CallBooking(call, least, caps))
        *_, record = await asyncio.shield(asyncio.ensure_future(flush))
        assert isinstance(record.event, ModelCalled)
        return record.event

    async def wait_for_writes(self) -> None:
        """Wait for writes in progress, so that the transcript holds them."""
        async with self._write_lock:
            pass

    def show(self, event: LiveEvent) -> None:
        self._show(self.redactor.live(event))

    async def release(self, *, soon: bool = False) -> None:
        for listener in tuple(self._listeners):
            listener.close()
        if self.lease is not None:
            await self._journal.release(self.lease, soon=soon)
            self.lease = None

    async def _commit(self, own: dict[int, DurableEvent]) -> tuple[Record, ...]:
        try:
            return await self._flush()
        except BaseException:
            self._noted = [event for event in self._noted if id(event) not in own]
            for key in own:
                self._typed.pop(key, None)
            raise
        finally:
            for key in own:
                del self._committing[key]

    async def reload(self, *, is_lost: bool) -> None:
        """Drop the events that were never written and read the transcript again. If the lease
        `is_lost`, acquire it first; raise SessionBusy while another process holds it."""
        async with self._write_lock:
            if self.lease is None:
                return
            if is_lost:
                self.lease = await self._journal.acquire(self.session_id)
            self.transcript = fold(await self._journal.read(self.session_id))
            self._turn_id = self.transcript.turn_id
            self._noted.clear()
            self._applied.clear()
            self._typed.clear()

    async def _flush(self, booking: CallBooking | None = None) -> tuple[Record, ...]:
        async with self._write_lock:
            if booking is not None and self.lease is None:
                # A session without a message yet starts with its side work.
                await self._write(None)
            return await self._write(booking) if self._noted or booking else ()

    async def _write(self, booking: CallBooking | None) -> tuple[Record, ...]:
        batch, self._noted = self._noted, []
        try:
            records = await self._append(batch, booking)
        except BaseException:
            self._noted = batch + self._noted
            raise
        for record in records:
            if self._applied.pop(id(record.event), None) is None:
                self.transcript.apply(self._as_typed(record))
            else:
                self.transcript.remember_number(record)
            self._publish(record)
        self._show(self.redactor.remarks())
        return records

    def _as_typed(self, record: Record) -> Record:
        _, typed = self._typed.pop(id(record.event), (None, None))
        return record if typed is None else replace(record, event=typed)

    async def _append(
        self, batch: list[DurableEvent], booking: CallBooking | None
    ) -> tuple[Record, ...]:
        if self.lease is None:
            assert self._opening is not None
            self.before_opening()
            self.lease, records = await self._journal.create(
                self.session_id, (self._opening, *batch), turn_id=self._turn_id
            )
            return records
        if booking is None:
            return await self._journal.append(self.lease, batch, turn_id=self._turn_id)
        return await self._journal.book(
            self.lease,
            batch,
            booking.call,
            least=booking.least,
            caps=booking.caps,
            turn_id=self._turn_id,
        )

    def _live_record(self, event: DurableEvent | LiveEvent) -> Record:
        return Record(
            session_id=self.session_id,
            n=0,
            turn_id=self._turn_id,
            at=self._world.clock.now(),
            event=event,
        )

    def _show(self, events: Iterable[LiveEvent]) -> None:
        for event in events:
            self._publish(self._live_record(event))

    def _publish(self, record: Record) -> None:
        for listener in self._listeners:
            listener.push(record)


class CallBooking(NamedTuple):
    """A call to book, with its limits."""

    call: ModelCalled
    least: Usage
    caps: Caps
