"""The error that explains why no key can be used, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.core.errors import ProviderError, Reason
from hermes.credentials.held import StoredKey
from hermes.credentials.states import KeyState
from hermes.providers.waits import MAX_WAIT_SECONDS

# A clock that runs slightly fast must not wake the caller too early.
_MARGIN_SECONDS = 0.05
_SOON_SECONDS = 30.0
_WHY = {"rate_limit": "rate limit", "billing": "no credit", "auth": "refused"}
_REASONS: dict[str, Reason] = {"rate_limit": "rate_limit", "billing": "billing", "auth": "auth"}


def no_key_error(
    provider: str, keys: Sequence[StoredKey], state_of: Callable[[StoredKey], KeyState], now: float
) -> ProviderError:
    """`retry_after` is None if no key is in cooldown: waiting does not help."""
    alive = [held for held in keys if not held.dead]
    resting = [(state.until, held) for held in alive if (state := state_of(held)).in_cooldown(now)]
    if resting:
        until, first = min(resting, key=lambda pair: pair[0])
        return _cooldown_error(provider, len(keys), state_of(first), until - now)
    return ProviderError(_missing_message(provider, keys), reason="auth")


def _cooldown_error(provider: str, count: int, state: KeyState, seconds: float) -> ProviderError:
    keys = f"All {count} {provider} keys are" if count > 1 else f"The {provider} key is"
    soon = seconds <= (MAX_WAIT_SECONDS if state.rests == "rate_limit" else _SOON_SECONDS)
    return ProviderError(
        f"{keys} in cooldown ({_WHY[state.rests]}) for another {format_duration(seconds)}; "
        f"add one with `hermes auth add {provider}`, or see `hermes auth list {provider}`.",
        reason=_REASONS[state.rests],
        status=state.code,
        retryable=soon,
        retry_after=seconds + _MARGIN_SECONDS,
    )


def _missing_message(provider: str, keys: Sequence[StoredKey]) -> str:
    if not keys:
        return (
            f"There is no key for {provider}; add one with `hermes auth add {provider}`, or log in "
            f"with `hermes login {provider}`."
        )
    first = keys[0]
    why = f" ({first.note})" if first.note else ""
    if first.own:
        cure = f"`hermes login {provider}`" if first.oauth else f"`hermes auth add {provider}`"
        return f"The {provider} login {first.label or first.id} has expired{why}; run {cure}."
    return f"The {provider} key {first.label} is no longer valid{why}."


def format_duration(seconds: float) -> str:
    """A duration in its largest unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"
