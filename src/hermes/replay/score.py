"""The recorded events as a score: how far they were played, and the first one that was not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hermes.codec.json import encode
from hermes.core.events import (
    Archived,
    Compacted,
    DurableEvent,
    ModelCalled,
    ModelSwitched,
    Overlaid,
    Rewound,
    SessionEnded,
    Titled,
    Tuned,
    TurnEnded,
)
from hermes.journal.body_templates import KINDS
from hermes.replay.cues import side_work
from hermes.replay.differences import difference
from hermes.replay.recording import RecordedLine
from hermes.replay.report import Divergence, Where


class Heartbeat:
    """Wakes everybody who waits, as often as something happens."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class ExpectedEvents:
    """`place` is the next line to be played, up to `end`. Events are compared as they are noted,
    which is before they are committed: that is their order in the journal. `goes_on` means that
    what comes behind a divergence is wanted too; `is_closed` that nobody plays any more. `asks_on`
    tells whether one more request was made by this process than its events show. `side` are the
    places of what was done beside the turns. `leaves_after` is the place of a line that was changed
    on purpose: the next reply is somebody else's."""

    def __init__(self, lines: Sequence[RecordedLine], *, goes_on: bool = False) -> None:
        self.lines = lines
        self.events = [line.event for line in lines]
        self.side = side_work(self.events)
        self.place = 0
        self.end = 0
        self.divergence: Divergence | None = None
        self.diverged_at = 0
        self.is_closed = True
        self.pulse = Heartbeat()
        self.asks_on: Callable[[], bool] = bool
        self.other_booking: tuple[int, bytes, bytes] | None = None
        self.leaves_after: int | None = None
        self._goes_on = goes_on

    def open(self, start: int, end: int) -> None:
        """Another process comes in, and does what stands between these places."""
        self.place, self.end, self.is_closed = start, end, False
        self.pulse.beat()

    def close(self) -> None:
        self.is_closed = True
        self.pulse.beat()

    @property
    def is_free(self) -> bool:
        """The session has left its record and goes on without one."""
        return self._goes_on and self.divergence is not None

    @property
    def is_driven(self) -> bool:
        """The session still does what it did then."""
        return self.divergence is None and not self.is_closed

    async def changed(self) -> None:
        await self.pulse.wait()

    async def hang(self) -> None:
        """Wait until nobody leads any more."""
        while self.is_driven or (self.divergence is not None and not self.is_free):
            if self.is_closed:
                return
            await self.pulse.wait()

    async def rest(self) -> None:
        """Where the process did nothing more then, it does nothing more now."""
        if self.is_over and self.is_driven:
            await self.hang()

    def skip(self) -> None:
        """The line was put in, not played."""
        self.place += 1
        self.pulse.beat()

    @property
    def is_over(self) -> bool:
        """This process does nothing more that was recorded."""
        return self.place >= self.end

    @property
    def was_killed(self) -> bool:
        """The process ended in the middle of a turn: what it had noted and not written is lost."""
        if not self.is_over or not self.is_driven or self.place == 0:
            return False
        last = self.events[self.place - 1]
        return bool(self.lines[self.place - 1].turn_id) and not isinstance(
            last,
            TurnEnded
            | Archived
            | SessionEnded
            | Titled
            | Tuned
            | ModelSwitched
            | Rewound
            | Compacted
            | Overlaid,
        )

    @property
    def due(self) -> DurableEvent | None:
        """The event that comes next."""
        return None if self.is_over else self.events[self.place]

    def take(self, event: DurableEvent) -> bool:
        """Whether this is the event that was recorded here."""
        if not self.is_driven:
            return False
        if self.is_over:
            return self.diverge("extra", now=encode(event), kind=KINDS[type(event)])
        recorded, now = bytes(self.lines[self.place].body), encode(event)
        if recorded != now and encode(self.events[self.place]) != now:
            return self.diverge("event", recorded=recorded, now=now)
        self.place += 1
        self.pulse.beat()
        return True

    def leave_if_changed(self) -> None:
        """What is asked now has the changed line in it."""
        if self.leaves_after is not None and self.place > self.leaves_after:
            self.diverge("request")

    def check_turn(self, place: int, turn_id: str) -> None:
        recorded = self.lines[place].turn_id
        if recorded != turn_id and self.is_driven:
            self.place = place
            self.diverge("turn", recorded=recorded.encode(), now=turn_id.encode())

    def diverge(
        self, where: Where, *, recorded: bytes = b"", now: bytes = b"", kind: str = ""
    ) -> bool:
        """Only the first divergence counts; the answer of `take` is always no."""
        if self.is_driven:
            self.diverged_at = self.place
            self.divergence = self._divergence(self.place, where, recorded, now, kind)
            self.pulse.beat()
        return False

    def on_booking(self, same_request: bool) -> None:
        """A call was reserved with another amount. If that is not because its request is another
        one, it is a difference of its own."""
        other, self.other_booking = self.other_booking, None
        if other is not None and same_request and self.is_driven:
            place, recorded, now = other
            self.diverged_at = place
            self.divergence = self._divergence(place, "event", recorded, now, "")
            self.pulse.beat()

    def other_request(self, recorded: bytes, now: bytes) -> Divergence:
        """What is said of a request that is another one: it belongs to the newest call."""
        calls = (i for i in range(self.place - 1, -1, -1) if self._is_call(i))
        return self._divergence(next(calls, self.place), "request", recorded, now, "")

    def diverge_at_request(self, recorded: bytes, now: bytes) -> None:
        if self.is_driven:
            self.divergence = self.other_request(recorded, now)
            self.diverged_at = self.divergence.n - 1
            self.pulse.beat()

    def _divergence(
        self, place: int, where: Where, recorded: bytes, now: bytes, kind: str
    ) -> Divergence:
        is_beyond = place >= len(self.lines)
        line = self.lines[min(place, len(self.lines) - 1)]
        found = difference(recorded, now)
        return Divergence(
            n=line.n + is_beyond,
            kind=kind or line.kind,
            where=where,
            field=found.field,
            recorded=found.recorded,
            now=found.now,
        )

    def _is_call(self, place: int) -> bool:
        return isinstance(self.events[place], ModelCalled)
