"""Tracks rate-limited models for all sessions of a process."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.core.errors import ProviderError, Reason
from hermes.core.world import Clock

COOLDOWN_SECONDS = 60.0
MAX_COOLDOWN_SECONDS = 24 * 3600.0
# After these errors an immediate retry cannot help; other errors may be gone by the next turn.
COOLDOWN_REASONS: frozenset[Reason] = frozenset(("rate_limit", "upstream_rate_limit", "billing"))


class Cooldown(Value):
    """`until` is monotonic time."""

    until: float
    reason: Reason


class ModelCooldowns:
    """Keyed by a name that is the same in all sessions, such as provider, address and model."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cooldowns: dict[str, Cooldown] = {}

    def note(self, who: str, error: ProviderError) -> None:
        """Starts a cooldown for rate-limit and billing errors: as long as the server said, else a
        minute. A cooldown is never shortened."""
        if error.reason not in COOLDOWN_REASONS:
            return
        seconds = COOLDOWN_SECONDS if error.retry_after is None else error.retry_after
        self.start(who, seconds, error.reason)

    def start(self, who: str, seconds: float, reason: Reason) -> None:
        until = self._clock.monotonic() + min(seconds, MAX_COOLDOWN_SECONDS)
        known = self._cooldowns.get(who)
        if known is None or known.until < until:
            self._cooldowns[who] = Cooldown(until=until, reason=reason)

    def remaining_seconds(self, who: str) -> float:
        """Remaining seconds; 0 if there is no cooldown."""
        rest = self._cooldowns.get(who)
        return max(0.0, rest.until - self._clock.monotonic()) if rest is not None else 0.0

    def reason(self, who: str) -> Reason:
        rest = self._cooldowns.get(who)
        return rest.reason if rest is not None else "unknown"

    def end(self, who: str) -> None:
        """Ends the cooldown after a successful reply."""
        self._cooldowns.pop(who, None)
