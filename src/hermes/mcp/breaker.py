"""When a server that fails is left alone, and when it is tried again."""

from __future__ import annotations

from hermes.core.world import Clock

FAILURES = 3
OPEN_SECONDS = 60.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
TRIES = 5
PARKED_SECONDS = 300.0


class Breaker:
    """After some failed calls in a row none are made for a while; then one is tried."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @property
    def left_seconds(self) -> float:
        """How long no call is made; 0 when one may be tried."""
        return max(0.0, self._open_until - self._clock.monotonic())

    @property
    def failures(self) -> int:
        return self._failures

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = self._clock.monotonic() + OPEN_SECONDS

    def succeeded(self) -> None:
        self._failures = 0
        self._open_until = 0.0


class Backoff:
    """How long to wait before the next attempt to connect: twice as long each time, and after
    some attempts much longer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries = 0
        self._next = 0.0

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._next - self._clock.monotonic())

    @property
    def parked(self) -> bool:
        return self._tries >= TRIES

    def failed(self) -> None:
        self._tries += 1
        wait = min(FIRST_WAIT_SECONDS * 2 ** (self._tries - 1), LONGEST_WAIT_SECONDS)
        self._next = self._clock.monotonic() + (PARKED_SECONDS if self.parked else wait)

    def succeeded(self) -> None:
        self._tries = 0
        self._next = 0.0
