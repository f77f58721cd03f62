"""The journal of a replay: a real one, whose records carry the moments of the old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.core.caps import Caps
from hermes.core.errors import JournalError
from hermes.core.events import DurableEvent, ModelCalled, Record, SessionOpened
from hermes.core.messages import Usage
from hermes.core.ports import Lease
from hermes.core.world import World
from hermes.journal.body_templates import pack_body
from hermes.journal.journal import SqliteJournal
from hermes.journal.transaction import Transaction
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.inputs import cap_reached
from hermes.replay.recording import RecordedLine
from hermes.replay.sync_points import ReplayClock


class ReplayJournal(SqliteJournal):
    """`noted` is told of calls, which are noted only when they are written. `place` is the next
    line to be written."""

    def __init__(
        self,
        path: Path,
        world: World,
        *,
        score: ExpectedEvents,
        clock: ReplayClock,
        noted: Callable[[DurableEvent], None],
    ) -> None:
        super().__init__(path, world)
        self._score = score
        self._clock = clock
        self._noted = noted
        self.place = score.place

    async def append(
        self, lease: Lease, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Record, ...]:
        records: list[Record] = []
        for batch, turn in self._batches(events, turn_id):
            records += await super().append(lease, batch, turn_id=turn)
            self.place += len(batch)
        return tuple(records)

    async def book(
        self,
        lease: Lease,
        events: Sequence[DurableEvent],
        call: ModelCalled,
        *,
        least: Usage,
        caps: Caps,
        turn_id: str = "",
    ) -> tuple[Record, ...]:
        """What the caps left of a call depends on all else that was spent, so the record says it,
        not the caps."""
        granted = self._grant(call)
        self._noted(granted)
        if not (self._score.is_driven or self._score.is_free):
            await self._score.hang()
            raise JournalError("The session has left its record.")
        *before, booked = await self.append(lease, (*events, granted), turn_id=turn_id)
        if self._score.other_booking is not None:
            # What it may cost is said as it was; what it may be is not limited by that.
            booked = replace(booked, event=call)
        return (*before, booked)

    def _grant(self, call: ModelCalled) -> ModelCalled:
        if not self._score.is_driven:
            return call
        if (reached := cap_reached(self._score.events, self._score.place)) is not None:
            raise reached
        due = self._score.due
        if isinstance(due, ModelCalled) and due.reserved is not None:
            return self._reservation(call, due.reserved)
        return call

    def _reservation(self, call: ModelCalled, left: Usage) -> ModelCalled:
        """The same call with the amount of then. One that is smaller only in its answer was
        limited by a cap; any other comes from another request, which is compared next."""
        if left == call.reserved:
            return call
        as_then = replace(call, reserved=left)
        if not _is_less(left, call.reserved) and as_then == self._score.due:
            place = self._score.place
            self._score.other_booking = (place, encode(as_then), encode(call))
        return as_then

    def _batches(
        self, events: Sequence[DurableEvent], turn_id: str
    ) -> Iterator[tuple[Sequence[DurableEvent], str]]:
        """The events in groups that were written together; each group at its moment. Side work is
        said to belong to the turn of which it was then: whether one was over when it was written
        is a matter of chance."""
        if self._score.is_free:
            yield events, turn_id
            return
        if not self._score.is_driven:
            return
        first = self.place
        lines = self._score.lines[first : first + len(events)]
        begin = 0
        for number, line in enumerate(lines):
            if first + number not in self._score.side:
                self._score.check_turn(first + number, turn_id)
            after = lines[number + 1] if number + 1 < len(lines) else None
            if after is None or (after.at, after.turn_id) != (line.at, line.turn_id):
                self._clock.at = line.at
                yield events[begin : number + 1], line.turn_id
                begin = number + 1


async def seed(
    journal: SqliteJournal, session_id: str, lines: Sequence[RecordedLine], shared: int
) -> None:
    """Write records as they are; those that a fork shares belong to its parent."""

    def work(tx: Transaction) -> None:
        parent = ""
        if shared:
            opened = lines[shared].event
            assert isinstance(opened, SessionOpened)
            parent = opened.parent
            _put(tx, tx.create(parent), lines[:shared])
            tx.settle()
        _put(tx, tx.create(session_id, parent=parent, parent_n=shared), lines[shared:])

    await journal.writing(work)


def _put(tx: Transaction, session: int, lines: Sequence[RecordedLine]) -> None:
    for line in lines:
        item = pack_body(line.event, line.kind, line.version, bytes(line.body))
        tx.put(session, item, turn_id=line.turn_id, at=line.at, n=line.n)


def _is_less(left: Usage, wanted: Usage | None) -> bool:
    """A cap left less output than was asked for, and changed nothing else."""
    return wanted is not None and left.input == wanted.input and left.output < wanted.output
