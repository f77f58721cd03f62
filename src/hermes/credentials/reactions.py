"""Computes the cooldown of a key after a failure: from the provider, else from the settings."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.core.errors import ProviderError
from hermes.credentials.states import CooldownReason

FIRST_GUESS_SECONDS = 60.0
LONGEST_SECONDS = 8 * 86_400.0
LONGEST_REFUSED_SECONDS = 86_400.0
PROBE_SECONDS = 120.0
UNCLEAR_SECONDS = 5.0
UNREACHABLE_SECONDS = 10.0
_SHORTEST_SECONDS = 0.5


class KeyCooldowns(Value):
    """Cooldowns in seconds, for failures without a time from the provider."""

    rate_limit: float = 3600.0
    billing: float = 86_400.0
    auth: float = 300.0


def cooldown_reason(error: ProviderError) -> CooldownReason:
    """Why this error starts a cooldown; "" if it is not about the key."""
    match error.reason:
        case "rate_limit" | "billing":
            return error.reason
        case "auth" | "auth_permanent":
            return "auth"
        case _:
            return ""


def cooldown_seconds(error: ProviderError, *, failures: int, cooldowns: KeyCooldowns) -> float:
    """`failures` are the previous cooldowns without a success in between. A guess starts small,
    because most limits end soon, and grows; so does the cooldown of a refused key, because most
    stay refused."""
    given = error.retry_after
    match cooldown_reason(error):
        case "rate_limit" | "auth" if given is not None:
            return min(max(given, _SHORTEST_SECONDS), LONGEST_SECONDS)
        case "rate_limit":
            return min(_backoff(FIRST_GUESS_SECONDS, 4, failures), cooldowns.rate_limit)
        case "billing":
            return cooldowns.billing
        case _:
            most = max(cooldowns.auth, LONGEST_REFUSED_SECONDS)
            return min(_backoff(cooldowns.auth, 2, failures), most)


def lacks_permission(error: ProviderError) -> bool:
    """The key is valid but lacks permission; neither a cooldown nor a refresh helps."""
    return error.reason == "auth" and error.status == 403


def accepts_key(error: ProviderError) -> bool:
    """Whether the provider rejected the request itself, and so accepted the key."""
    status = error.status or 0
    return 400 <= status < 500 and status not in (401, 402, 403, 408, 429)


def _backoff(first: float, factor: int, times: int) -> float:
    return first * float(factor ** min(times, 16))
