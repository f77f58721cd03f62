"""The journal of a replay: a real journal that writes the recorded timestamps."""

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
    """A journal that writes events with their recorded times. `on_note` receives model calls, which
    are noted only when they are written. `position` is the next line to write."""

    def __init__(
        self,
        path: Path,
        world: World,
        *,
        expected: ExpectedEvents,
        clock: ReplayClock,
        on_note: Callable[[DurableEvent], None],
    ) -> None:
        super().__init__(path, world)
        self._expected = expected
        self._clock = clock
        self._on_note = on_note
        self.position = expected.position

    async def append(
        self, lease: Lease, events: Sequence[DurableEvent], *, turn_id: str = ""
    ) -> tuple[Record, ...]:
        records: list[Record] = []
        for batch, turn in self._batches(events, turn_id):
            records += await super().append(lease, batch, turn_id=turn)
            self.position += len(batch)
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
        """Book the recorded amount, since what the caps grant depends on all other spending."""
        granted = self._grant(call)
        self._on_note(granted)
        if not (self._expected.is_driven or self._expected.is_free):
            await self._expected.wait_for_release()
            raise JournalError("The session has diverged from its record.")
        *before, booked = await self.append(lease, (*events, granted), turn_id=turn_id)
        if self._expected.other_booking is not None:
            # The journal gets the recorded reservation; the call itself keeps its own limit.
            booked = replace(booked, event=call)
        return (*before, booked)

    def _grant(self, call: ModelCalled) -> ModelCalled:
        """Return the call with the recorded reservation."""
        if not self._expected.is_driven:
            return call
        if (reached := cap_reached(self._expected.events, self._expected.position)) is not None:
            raise reached
        due = self._expected.due
        if not isinstance(due, ModelCalled) or due.reserved in (None, call.reserved):
            return call
        granted = replace(call, reserved=due.reserved)
        recorded, own = due.reserved, call.reserved
        by_cap = own and recorded.input == own.input and recorded.output < own.output
        # A smaller output was limited by a cap; any other difference comes from a different
        # request, which is compared next.
        if not by_cap and granted == due:
            position = self._expected.position
            self._expected.other_booking = (position, encode(granted), encode(call))
        return granted

    def _batches(
        self, events: Sequence[DurableEvent], turn_id: str
    ) -> Iterator[tuple[Sequence[DurableEvent], str]]:
        """Group the events that were written together, with their recorded time and turn. The turn
        of side work is not compared, since it depends on timing."""
        if self._expected.is_free:
            yield events, turn_id
            return
        if not self._expected.is_driven:
            return
        first = self.position
        lines = self._expected.lines[first : first + len(events)]
        begin = 0
        for number, line in enumerate(lines):
            if first + number not in self._expected.side:
                self._expected.check_turn(first + number, turn_id)
            after = lines[number + 1] if number + 1 < len(lines) else None
            if after is None or (after.at, after.turn_id) != (line.at, line.turn_id):
                self._clock.at = line.at
                yield events[begin : number + 1], line.turn_id
                begin = number + 1


async def seed(
    journal: SqliteJournal, session_id: str, lines: Sequence[RecordedLine], shared: int
) -> None:
    """Write records unchanged; records that a fork inherits go to its parent."""

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
