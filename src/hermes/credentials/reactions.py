"""How long a key rests after a failure: as long as the provider says, else as the settings say."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.core.errors import ProviderError
from hermes.credentials.states import Rest

FIRST_GUESS_SECONDS = 60.0
LONGEST_SECONDS = 8 * 86_400.0
LONGEST_REFUSED_SECONDS = 86_400.0
PROBE_SECONDS = 120.0
UNCLEAR_SECONDS = 5.0
UNREACHABLE_SECONDS = 10.0
_SHORTEST_SECONDS = 0.5


class Cooldowns(Value):
    """In seconds, for failures of which the provider does not say when they are over."""

    rate_limit: float = 3600.0
    billing: float = 86_400.0
    auth: float = 300.0


def kind_of(error: ProviderError) -> Rest:
    """Why a key has to rest after this error; "" when it is not about the key."""
    match error.reason:
        case "rate_limit" | "billing":
            return error.reason
        case "auth" | "auth_permanent":
            return "auth"
        case _:
            return ""


def rest_seconds(error: ProviderError, *, failures: int, cooldowns: Cooldowns) -> float:
    """`failures` are the rests before this one without a success between them. A guess begins
    small and grows, because most limits are over soon; so does the rest of a refused key, because
    most of those stay refused."""
    said = error.retry_after
    match kind_of(error):
        case "rate_limit" | "auth" if said is not None:
            return min(max(said, _SHORTEST_SECONDS), LONGEST_SECONDS)
        case "rate_limit":
            return min(_grown(FIRST_GUESS_SECONDS, 4, failures), cooldowns.rate_limit)
        case "billing":
            return cooldowns.billing
        case _:
            most = max(cooldowns.auth, LONGEST_REFUSED_SECONDS)
            return min(_grown(cooldowns.auth, 2, failures), most)


def is_entitlement(error: ProviderError) -> bool:
    """The key is good, but not for this: neither a rest nor a renewal changes that."""
    return error.reason == "auth" and error.status == 403


def accepts_key(error: ProviderError) -> bool:
    """The provider looked at the request itself, so it had no quarrel with the key."""
    status = error.status or 0
    return 400 <= status < 500 and status not in (401, 402, 403, 408, 429)


def _grown(first: float, factor: int, times: int) -> float:
    return first * float(factor ** min(times, 16))
