"""Circuit breaker and reconnect back-off for servers."""

from __future__ import annotations

from hermes.core.world import Clock

FAILURES = 3
OPEN_SECONDS = 60.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
TRIES = 5
PARKED_SECONDS = 300.0


class CircuitBreaker:
    """Blocks calls for a while after consecutive failures; then allows one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @property
    def left_seconds(self) -> float:
        """Returns the seconds until a call is allowed."""
        return max(0.0, self._open_until - self._clock.monotonic())

    @property
    def failures(self) -> int:
        return self._failures

    def record_failure(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = self._clock.monotonic() + OPEN_SECONDS

    def record_success(self) -> None:
        self._failures = 0
        self._open_until = 0.0


class Backoff:
    """Exponential delay between connection attempts, and a long pause after several."""

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

    def record_failure(self) -> None:
        self._tries += 1
        wait = min(FIRST_WAIT_SECONDS * 2 ** (self._tries - 1), LONGEST_WAIT_SECONDS)
        self._next = self._clock.monotonic() + (PARKED_SECONDS if self.parked else wait)

    def record_success(self) -> None:
        self._tries = 0
        self._next = 0.0
