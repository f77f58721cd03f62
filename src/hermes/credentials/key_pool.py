"""Chooses among the keys of a provider, reacts to failures, and explains why no key is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.config.provider_settings import PoolStrategy
from hermes.core.errors import ConfigError, ProviderError, Reason
from hermes.core.world import World
from hermes.credentials.key_health import (
    UNREACHABLE_SECONDS,
    KeyHealth,
    KeyState,
    accepts_key,
    cooldown_reason,
    lacks_permission,
)
from hermes.credentials.key_sources import KeySources
from hermes.credentials.stored_key import StoredKey, choose_key
from hermes.credentials.token_refresh import RefreshFailed, TokenRefresher
from hermes.providers.failure_patterns import MAX_WAIT_SECONDS
from hermes.providers.keys import Credential, KeyVerdict

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


_LOOK_AGAIN_SECONDS = 0.05
_MOST_RENEWALS = 2


class KeyPool:
    """The keys of one provider for all sessions of this process; implements Keys."""

    def __init__(
        self,
        holdings: KeySources,
        renewal: TokenRefresher,
        conditions: KeyHealth,
        world: World,
        *,
        strategy: PoolStrategy = "fill_first",
    ) -> None:
        self._sources = holdings
        self._refresher = renewal
        self._health = conditions
        self._world = world
        self._strategy: PoolStrategy = strategy
        self._strikes: dict[str, int] = {}
        self._refused_tokens: dict[str, set[str]] = {}
        self._last = ""

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        while True:
            keys = await self._keys()
            self._health.refresh()
            able = [held for held in keys if held.id not in avoid and self._is_usable(held)]
            found = await self._claim_one(able, keys, again)
            if found is None:
                await self._wait_for_probe(keys, avoid)
                continue
            held, probe = found
            fresh = await self._refresh_if_needed(held)
            if fresh is None:
                avoid = avoid | {held.id}
                continue
            self._last = held.id
            await self._health.count(held)
            return fresh.credential(probe)

    async def report(self, credential: Credential, error: ProviderError | None) -> KeyVerdict:
        if error is None:
            await self._accept(credential)
            return "again"
        self._health.refresh()
        match cooldown_reason(error):
            case "rate_limit":
                return await self._handle_rate_limit(credential, error)
            case "billing":
                return await self._start_cooldown(credential, error)
            case "auth":
                return await self._handle_refusal(credential, error)
            case _ if accepts_key(error):
                await self._accept(credential)
            case _:
                self.release(credential)
        return "stop"

    def release(self, credential: Credential) -> None:
        self._health.release(credential)

    async def close(self) -> None:
        """Waits for running refreshes and writes the request counts."""
        await self._refresher.close()
        await self._health.flush()

    async def _keys(self) -> tuple[StoredKey, ...]:
        try:
            return await self._sources.keys()
        except ConfigError as error:
            raise ProviderError(str(error), reason="auth") from error

    async def _find(self, credential: Credential) -> StoredKey | None:
        return next((held for held in await self._keys() if held.id == credential.id), None)

    def _is_usable(self, held: StoredKey) -> bool:
        """Whether the key is healthy, or past its cooldown and not being probed."""
        now, state = self._world.clock.now(), self._health.state_of(held)
        alive = not held.dead and bool(held.renewal_token or not held.expires_within(0, now))
        return alive and not state.in_cooldown(now) and not state.is_being_probed(now)

    async def _claim_one(
        self, able: list[StoredKey], keys: tuple[StoredKey, ...], again: str
    ) -> tuple[StoredKey, str] | None:
        """One of the able keys, with the probe token if it had a cooldown."""
        while able:
            held = self._choose(able, keys, again)
            if not self._health.state_of(held).rests:
                return held, ""
            if probe := await self._health.claim(held):
                return held, probe
            able.remove(held)
        return None

    def _choose(self, able: list[StoredKey], keys: tuple[StoredKey, ...], again: str) -> StoredKey:
        for held in able:
            if held.id == again:
                return held
        return choose_key(
            self._strategy,
            able,
            requests=self._health.requests,
            order=[held.id for held in keys],
            last=self._last or self._last_used(keys),
            chance=self._world.chance,
        )

    def _last_used(self, keys: tuple[StoredKey, ...]) -> str:
        used = [(self._health.state_of(held).used_at, held.id) for held in keys]
        moment, key_id = max(used, default=(0.0, ""))
        return key_id if moment else ""

    async def _wait_for_probe(self, keys: tuple[StoredKey, ...], avoid: frozenset[str]) -> None:
        """Waits a moment if another task is probing a key; raises ProviderError otherwise."""
        now = self._world.clock.now()
        candidates = (held for held in keys if held.id not in avoid and not held.dead)
        if not any(self._health.state_of(held).is_being_probed(now) for held in candidates):
            raise no_key_error(self._sources.provider, keys, self._health.state_of, now)
        await self._world.clock.sleep(_LOOK_AGAIN_SECONDS)

    async def _refresh_if_needed(self, held: StoredKey) -> StoredKey | None:
        """The key with a valid token, refreshed if needed; None if that fails."""
        held = self._refresher.current(held)
        now = self._world.clock.now()
        if not held.renewal_token or not held.expires_within(self._refresher.skew_seconds, now):
            return held
        fresh = await self._refresher.refresh(held, stale=held.key)
        if not isinstance(fresh, RefreshFailed):
            return fresh
        if not fresh.final and not held.expires_within(0, now):
            return held
        if not (fresh.final and held.own):
            await self._health.start_cooldown(held, _refresh_error(fresh))
        return None

    async def _accept(self, credential: Credential) -> None:
        self._strikes.pop(credential.id, None)
        self._refused_tokens.pop(credential.id, None)
        await self._health.accept(credential)

    async def _handle_rate_limit(self, credential: Credential, error: ProviderError) -> KeyVerdict:
        """A rate limit without an end may be transient: the key gets a second try."""
        held = await self._find(credential)
        known = error.retry_after is not None or bool(credential.probe)
        if known or held is None or self._health.state_of(held).rests:
            return await self._start_cooldown(credential, error)
        if not await self._has_other_usable_key(held.id):
            return "stop"
        strikes = self._strikes[held.id] = self._strikes.get(held.id, 0) + 1
        return "again" if strikes < 2 else await self._start_cooldown(credential, error)

    async def _handle_refusal(self, credential: Credential, error: ProviderError) -> KeyVerdict:
        if lacks_permission(error):
            await self._accept(credential)
            return "rotate"
        held = await self._find(credential)
        if held is None or held.dead:
            return "rotate"
        held = self._refresher.current(held)
        if held.key and held.key != credential.key:
            # Refreshed meanwhile, by this process or another program.
            return "again"
        # Sessions that were refused with the same token share one refresh.
        refused = self._refused_tokens.setdefault(held.id, set())
        refused.add(credential.key)
        if held.renewal_token and len(refused) <= _MOST_RENEWALS:
            fresh = await self._refresher.refresh(held, stale=credential.key)
            if not isinstance(fresh, RefreshFailed):
                return "again"
            error = _refresh_error(fresh)
        return await self._start_cooldown(credential, error)

    async def _start_cooldown(self, credential: Credential, error: ProviderError) -> KeyVerdict:
        """Starts the cooldown of a key. The last usable key gets none if its length is only a
        guess: any attempt is better than none."""
        held = await self._find(credential)
        self._strikes.pop(credential.id, None)
        if held is None or held.dead:
            return "rotate"
        is_known = error.retry_after is not None or bool(credential.probe)
        if not is_known and not await self._has_other_usable_key(held.id):
            return "stop"
        await self._health.start_cooldown(held, error, probe=credential.probe)
        return "rotate"

    async def _has_other_usable_key(self, key_id: str) -> bool:
        keys = await self._keys()
        return any(self._is_usable(other) for other in keys if other.id != key_id)


def _refresh_error(failed: RefreshFailed) -> ProviderError:
    wait = None if failed.final else UNREACHABLE_SECONDS
    return ProviderError(failed.text, reason="auth", status=401, retry_after=wait)
