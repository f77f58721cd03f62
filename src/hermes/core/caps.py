"""Spending caps with their keys, and the step budget of a turn."""

from __future__ import annotations

import time
from collections.abc import Iterator

from hermes.codec.values import Value
from hermes.core.events import CapScope

DAY_SECONDS = 86_400
SCOPES: tuple[CapScope, ...] = ("day", "month", "person", "job", "task")


class Cap(Value):
    """The most that may be spent, in dollars, tokens, or both."""

    usd: float | None = None
    tokens: int | None = None

    @property
    def is_set(self) -> bool:
        return self.usd is not None or self.tokens is not None


NO_CAP = Cap()


class Caps(Value):
    """The spending caps of a home. Days and months are in UTC."""

    day: Cap = NO_CAP
    month: Cap = NO_CAP
    # One principal per day.
    person: Cap = NO_CAP
    # A session with its sub-sessions.
    job: Cap = NO_CAP
    # One turn with the sub-sessions that it started.
    task: Cap = NO_CAP

    def of(self, scope: CapScope) -> Cap:
        cap: Cap = getattr(self, scope)
        return cap

    def active(self) -> Iterator[tuple[CapScope, Cap]]:
        """Return the caps that are set."""
        return ((scope, cap) for scope in SCOPES if (cap := self.of(scope)).is_set)

    @property
    def in_dollars(self) -> bool:
        return any(cap.usd is not None for _, cap in self.active())


NO_CAPS = Caps()


def day_of(at: float) -> int:
    """Return the number of days since 1970."""
    return int(at // DAY_SECONDS)


def first_day_of_month(at: float) -> int:
    return day_of(at) - time.gmtime(at).tm_mday + 1


def cap_key(scope: CapScope, *, at: float, principal: str, job: str, turn_id: str) -> str:
    """Return the key that a cap counts under at that time."""
    match scope:
        case "day":
            return time.strftime("%Y-%m-%d", time.gmtime(at))
        case "month":
            return time.strftime("%Y-%m", time.gmtime(at))
        case "person":
            return f"{principal} {time.strftime('%Y-%m-%d', time.gmtime(at))}"
        case "job":
            return job
        case "task":
            return turn_id


class StepBudget:
    """Counts model calls. A child's steps also count against its parent."""

    def __init__(self, total: int, parent: StepBudget | None = None) -> None:
        self.total = total
        self.used = 0
        self._parent = parent
        self._hinted = 0

    @property
    def remaining(self) -> int:
        own = max(0, self.total - self.used)
        return own if self._parent is None else min(own, self._parent.remaining)

    def consume(self) -> bool:
        """Take one step. False when none is left, here or in a parent."""
        if self.remaining == 0:
            return False
        self.used += 1
        if self._parent is not None:
            self._parent.consume()
        return True

    def refund(self) -> None:
        """Give back a step that did no work."""
        self.used = max(0, self.used - 1)
        if self._parent is not None:
            self._parent.refund()

    def hint(self) -> str:
        """Return a note for the model, once at 70 % and once at 90 % of the steps."""
        share = self.used * 100 // self.total if self.total else 100
        level = 90 if share >= 90 else 70 if share >= 70 else 0
        if level <= self._hinted:
            return ""
        self._hinted = level
        count = f"{self.used} of {self.total} steps of this turn are used"
        if level == 90:
            return f"[{count}: answer now; no more tools unless vital.]"
        return f"[{count}: start wrapping up.]"
