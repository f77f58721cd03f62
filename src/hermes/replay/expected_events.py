"""The events that a replay must produce, and its first divergence from them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue, Value
from hermes.core.events import (
    Archived,
    Compacted,
    ControlsChanged,
    DurableEvent,
    GoalChanged,
    ModelCalled,
    ModelSwitched,
    PersonalityChanged,
    Record,
    Rewound,
    SessionEnded,
    TitleChanged,
    TurnEnded,
)
from hermes.journal.body_templates import KINDS
from hermes.replay.inputs import side_work
from hermes.replay.recording import RecordedLine

# After one of these, no turn has unwritten events.
_COMPLETE = (
    *(
        TurnEnded,
        Archived,
        SessionEnded,
        TitleChanged,
        ControlsChanged,
        GoalChanged,
        ModelSwitched,
        Rewound,
        Compacted,
    ),
    PersonalityChanged,
)
Where = Literal["event", "request", "missing", "extra", "turn"]


class Divergence(Value):
    """The first difference between a recording and its replay."""

    # The record.
    n: int
    # Its event kind.
    kind: str
    # "event": a different event; "request": different request bytes; "missing": an event that did
    # not occur; "extra": an unrecorded event; "turn": an event of another turn.
    where: Where
    # Path of the first differing value.
    field: str = ""
    # The two values, shortened.
    recorded: str = ""
    now: str = ""


class Report(Value, omit_defaults=False):
    """The result of a replay."""

    session_id: str
    records: int
    # Number of identical events, of `records`.
    played: int
    # Number of requests that were compared byte for byte.
    requests: int = 0
    # Comparison of the hash chains of both journals.
    hashes: Literal["same", "differ", "unknown"] = "unknown"
    # Records after which another process continued.
    restarts: tuple[int, ...] = ()
    # Notices for the user.
    words: tuple[str, ...] = ()
    divergence: Divergence | None = None
    # The first different request where differences are allowed.
    request: Divergence | None = None
    # Events after a divergence, if the session was continued.
    after: tuple[Record, ...] = ()

    @property
    def identical(self) -> bool:
        return self.divergence is None


SHOWN = 160
_LEAD = 24


# The path of a value, and both values.
Difference = tuple[str, str, str]


def difference(recorded: bytes, now: bytes) -> Difference:
    """Return the path of the first difference and both values. The path is like
    messages[3].content; empty when the bytes are not JSON or differ only in their encoding."""
    try:
        found = _walk(decode(object, recorded), decode(object, now), "")
    except DecodeError:
        found = None
    if found is not None:
        return found
    return "", *_around(recorded.decode("utf-8", "replace"), now.decode("utf-8", "replace"))


def _walk(one: JsonValue, other: JsonValue, path: str) -> Difference | None:
    if isinstance(one, dict | list) and type(one) is type(other):
        items, others = _items(one, path), _items(other, path)
        for item_path in items | others:
            if item_path not in items or item_path not in others:
                recorded = _short(items[item_path]) if item_path in items else "(absent)"
                now = _short(others[item_path]) if item_path in others else "(absent)"
                return item_path, recorded, now
            if found := _walk(items[item_path], others[item_path], item_path):
                return found
        return None
    if one == other and type(one) is type(other):
        return None
    if isinstance(one, str) and isinstance(other, str):
        return path, *_around(one, other)
    return path, _short(one), _short(other)


def _around(one: str, other: str) -> tuple[str, str]:
    """Return both texts, starting shortly before the first difference."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    at = min(len(one), len(other)) if at is None else at
    start = max(0, at - _LEAD)
    lead = "…" if start else ""
    return lead + _cut(one[start:]), lead + _cut(other[start:])


def _items(value: JsonValue, path: str) -> dict[str, JsonValue]:
    """Return the items of a mapping or list by their path."""
    if isinstance(value, dict):
        return {f"{path}.{key}" if path else str(key): item for key, item in value.items()}
    return {f"{path}[{number}]": item for number, item in enumerate(value)}


def _short(value: JsonValue) -> str:
    return _cut(value if isinstance(value, str) else encode(value).decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


class ExpectedEvents:
    """The recorded events, compared with those of the replay. Events are compared when they are
    noted, before they are committed: that is their order in the journal. With `continue_after`, the
    session continues after a divergence."""

    def __init__(self, lines: Sequence[RecordedLine], *, continue_after: bool = False) -> None:
        self.lines = lines
        self.events = [line.event for line in lines]
        # Positions of side work.
        self.side = side_work(self.events)
        # The next line to replay, up to `end`.
        self.position = 0
        self.end = 0
        self.divergence: Divergence | None = None
        # The process is over.
        self.is_closed = True
        # Returns whether the process made one more request than its events show.
        self.has_more_requests: Callable[[], bool] = bool
        self.other_booking: tuple[int, bytes, bytes] | None = None
        # Position of a line that was changed on purpose: the next reply comes from the continuing
        # provider.
        self.diverge_after: int | None = None
        self._continue_after = continue_after
        self._changed = asyncio.Event()

    def open(self, start: int, end: int) -> None:
        """Start the next process, which replays the lines from `start` up to `end`."""
        self.position, self.end, self.is_closed = start, end, False
        self._notify()

    def close(self) -> None:
        self.is_closed = True
        self._notify()

    @property
    def diverged_at(self) -> int:
        return self.divergence.n - 1 if self.divergence is not None else 0

    @property
    def is_free(self) -> bool:
        """Return whether the session diverged and continues without the record."""
        return self._continue_after and self.divergence is not None

    @property
    def is_driven(self) -> bool:
        """Return whether the session still follows the record."""
        return self.divergence is None and not self.is_closed

    async def wait_for_change(self) -> None:
        await self._changed.wait()

    def _notify(self) -> None:
        """Wake all waiting tasks."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_release(self) -> None:
        """Wait until the process is closed or the session continues on its own."""
        while self.is_driven or (self.divergence is not None and not self.is_free):
            if self.is_closed:
                return
            await self.wait_for_change()

    async def wait_if_over(self) -> None:
        """Block at the end of the part: the recorded process did nothing more."""
        if self.is_over and self.is_driven:
            await self.wait_for_release()

    def skip(self) -> None:
        """Advance past a line."""
        self.position += 1
        self._notify()

    @property
    def is_over(self) -> bool:
        """Return whether all lines of this process were replayed."""
        return self.position >= self.end

    @property
    def was_killed(self) -> bool:
        """Return whether the process died during a turn and lost events it had not written."""
        if not self.is_over or not self.is_driven or self.position == 0:
            return False
        last = self.position - 1
        return bool(self.lines[last].turn_id) and not isinstance(self.events[last], _COMPLETE)

    @property
    def due(self) -> DurableEvent | None:
        """The next expected event."""
        return None if self.is_over else self.events[self.position]

    def take(self, event: DurableEvent) -> bool:
        """Return whether this event was recorded at the current position."""
        if not self.is_driven:
            return False
        if self.is_over:
            return self.diverge("extra", now=encode(event), kind=KINDS[type(event)])
        recorded, now = bytes(self.lines[self.position].body), encode(event)
        if recorded != now and encode(self.events[self.position]) != now:
            return self.diverge("event", recorded=recorded, now=now)
        self.skip()
        return True

    def diverge_if_changed(self) -> None:
        """Diverge on purpose once the next request contains the changed line."""
        if self.diverge_after is not None and self.position > self.diverge_after:
            self.diverge("request")

    def check_turn(self, position: int, turn_id: str) -> None:
        recorded = self.lines[position].turn_id
        if recorded != turn_id and self.is_driven:
            self.position = position
            self.diverge("turn", recorded=recorded.encode(), now=turn_id.encode())

    def diverge(
        self, where: Where, *, recorded: bytes = b"", now: bytes = b"", kind: str = ""
    ) -> bool:
        """Record the first divergence. Returns False, the result of `take`."""
        self._set_divergence(self._divergence(self.position, where, recorded, now, kind))
        return False

    def on_booking(self, same_request: bool) -> None:
        """Diverge if a call reserved a different amount although its request is the same."""
        other, self.other_booking = self.other_booking, None
        if other is not None and same_request:
            position, recorded, now = other
            self._set_divergence(self._divergence(position, "event", recorded, now))

    def other_request(self, recorded: bytes, now: bytes) -> Divergence:
        """Describe a different request, attributed to the newest model call."""
        before = range(self.position - 1, -1, -1)
        calls = (i for i in before if isinstance(self.events[i], ModelCalled))
        return self._divergence(next(calls, self.position), "request", recorded, now)

    def diverge_at_request(self, recorded: bytes, now: bytes) -> None:
        self._set_divergence(self.other_request(recorded, now))

    def _set_divergence(self, found: Divergence) -> None:
        if self.is_driven:
            self.divergence = found
            self._notify()

    def _divergence(
        self, position: int, where: Where, recorded: bytes, now: bytes, kind: str = ""
    ) -> Divergence:
        is_beyond = position >= len(self.lines)
        line = self.lines[min(position, len(self.lines) - 1)]
        field, before, after = difference(recorded, now)
        return Divergence(
            n=line.n + is_beyond,
            kind=kind or line.kind,
            where=where,
            field=field,
            recorded=before,
            now=after,
        )
