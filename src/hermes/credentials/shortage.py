"""The error that says why no key can be used, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.core.errors import ProviderError, Reason
from hermes.credentials.held import Held
from hermes.credentials.states import KeyState
from hermes.providers.waits import LONGEST

# A clock that runs a little fast must not wake the caller before the time has come.
_MARGIN_SECONDS = 0.05
_SOON_SECONDS = 30.0
_WHY = {"rate_limit": "rate limit", "billing": "no credit", "auth": "refused"}
_REASONS: dict[str, Reason] = {"rate_limit": "rate_limit", "billing": "billing", "auth": "auth"}


def shortage(
    provider: str, keys: Sequence[Held], state_of: Callable[[Held], KeyState], now: float
) -> ProviderError:
    """`retry_after` is None when no key rests: then waiting does not help."""
    alive = [held for held in keys if not held.dead]
    resting = [(state.until, held) for held in alive if (state := state_of(held)).is_resting(now)]
    if resting:
        until, first = min(resting, key=lambda pair: pair[0])
        return _resting(provider, len(keys), state_of(first), until - now)
    return ProviderError(_missing(provider, keys), reason="auth")


def _resting(provider: str, count: int, state: KeyState, seconds: float) -> ProviderError:
    all_of_them = f"All {count} keys of {provider} rest" if count > 1 else f"The key of {provider}"
    verb = "" if count > 1 else " rests"
    soon = seconds <= (LONGEST if state.rests == "rate_limit" else _SOON_SECONDS)
    return ProviderError(
        f"{all_of_them}{verb} ({_WHY[state.rests]}); it goes on in {span(seconds)}. "
        f"`hermes auth list {provider}` shows them, `hermes auth add {provider}` adds another.",
        reason=_REASONS[state.rests],
        status=state.code,
        retryable=soon,
        retry_after=seconds + _MARGIN_SECONDS,
    )


def _missing(provider: str, keys: Sequence[Held]) -> str:
    if not keys:
        return (
            f"There is no key for {provider}; add one with `hermes auth add {provider}`, or log in "
            f"with `hermes login {provider}`."
        )
    first = keys[0]
    why = f" ({first.note})" if first.note else ""
    if first.own:
        cure = f"`hermes login {provider}`" if first.oauth else f"`hermes auth add {provider}`"
        return f"The login {first.label or first.id} of {provider} is over{why}; run {cure}."
    return f"The key {first.label} of {provider} cannot be used any more{why}."


def span(seconds: float) -> str:
    """About how long, in the largest unit that fits."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"
