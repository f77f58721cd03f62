"""The events that a replay must produce, and its first divergence from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue, Value
from hermes.core.events import (
    Archived,
    Compacted,
    DurableEvent,
    ModelCalled,
    ModelSwitched,
    Overlaid,
    Record,
    Rewound,
    SessionEnded,
    Titled,
    Tuned,
    TurnEnded,
)
from hermes.journal.body_templates import KINDS
from hermes.replay.inputs import side_work
from hermes.replay.recording import RecordedLine

Where = Literal["event", "request", "missing", "extra", "turn"]


class Divergence(Value):
    """The first difference. `n` is the record, `kind` its kind; `field` the place in it where the
    two part, `recorded` and `now` what stands there, shortened. `where` tells apart an event that
    is another one, a request with other bytes, an event that never came, one that was never
    recorded, and one that belongs to another turn."""

    n: int
    kind: str
    where: Where
    field: str = ""
    recorded: str = ""
    now: str = ""


class Report(Value, omit_defaults=False):
    """`played` of `records` were the same, `requests` were compared byte for byte. `hashes` tells
    whether the journal that came out has the same chain of hashes. `restarts` are the records
    after which another process went on. `words` are what a person should know of how it was
    played. `request` is the first request that was another one, where that was allowed; `after` is
    what happened behind a divergence, if somebody was to go on from there."""

    session_id: str
    records: int
    played: int
    requests: int = 0
    hashes: Literal["same", "differ", "unknown"] = "unknown"
    restarts: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    divergence: Divergence | None = None
    request: Divergence | None = None
    after: tuple[Record, ...] = ()

    @property
    def identical(self) -> bool:
        return self.divergence is None


SHOWN = 160
_LEAD = 24


class Difference(NamedTuple):
    field: str
    recorded: str
    now: str


def difference(recorded: bytes, now: bytes) -> Difference:
    """`field` is a path like messages[3].content; empty when the bytes are no JSON or differ only
    in how they are written."""
    try:
        found = _walk(decode(object, recorded), decode(object, now), "")
    except DecodeError:
        found = None
    if found is None:
        one, other = recorded.decode("utf-8", "replace"), now.decode("utf-8", "replace")
        return Difference("", *_around(one, other))
    return found


def _walk(one: JsonValue, other: JsonValue, path: str) -> Difference | None:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in (*one, *(key for key in other if key not in one)):
            place = f"{path}.{key}" if path else str(key)
            if key not in one or key not in other:
                return Difference(place, _format(one, key), _format(other, key))
            if found := _walk(one[key], other[key], place):
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        for number in range(max(len(one), len(other))):
            place = f"{path}[{number}]"
            if number >= min(len(one), len(other)):
                return Difference(place, _nth(one, number), _nth(other, number))
            if found := _walk(one[number], other[number], place):
                return found
        return None
    if one == other and type(one) is type(other):
        return None
    if isinstance(one, str) and isinstance(other, str):
        return Difference(path, *_around(one, other))
    return Difference(path, _short(one), _short(other))


def _around(one: str, other: str) -> tuple[str, str]:
    """Both texts from a little before the place where they part."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    at = min(len(one), len(other)) if at is None else at
    start = max(0, at - _LEAD)
    lead = "…" if start else ""
    return lead + _cut(one[start:]), lead + _cut(other[start:])


def _format(holder: dict[str, JsonValue], key: str) -> str:
    return _short(holder[key]) if key in holder else "(absent)"


def _nth(items: list[JsonValue], number: int) -> str:
    return _short(items[number]) if number < len(items) else "(absent)"


def _short(value: JsonValue) -> str:
    return _cut(value if isinstance(value, str) else encode(value).decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


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
