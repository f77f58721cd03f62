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
from hermes.credentials.stored_key import StoredKey
from hermes.credentials.token_refresh import RefreshFailed, TokenRefresher
from hermes.providers.failure_patterns import MAX_WAIT_SECONDS
from hermes.providers.keys import Credential, KeyVerdict

# A clock that runs slightly fast must not wake the caller too early.
_MARGIN_SECONDS = 0.05
_SOON_SECONDS = 30.0
_WHY = {"rate_limit": "rate limit", "billing": "no credit", "auth": "refused"}
_REASONS: dict[str, Reason] = {"rate_limit": "rate_limit", "billing": "billing", "auth": "auth"}


def no_key_error(
    provider: str,
    keys: Sequence[StoredKey],
    state_of: Callable[[StoredKey], KeyState],
    now: float,
    *,
    cause: str = "",
) -> ProviderError:
    """Build the error for a provider without a usable key. `retry_after` is None if no key is in
    cooldown, because waiting does not help then. `cause` is why the last token could not be
    refreshed."""
    states = [state_of(key) for key in keys if not key.dead]
    state = min(
        (state for state in states if state.in_cooldown(now)),
        key=lambda state: state.until,
        default=None,
    )
    if state is None:
        return ProviderError(cause or _missing_message(provider, keys), reason="auth")
    seconds = state.until - now
    all_keys = f"All {len(keys)} {provider} keys are" if len(keys) > 1 else f"The {provider} key is"
    soon = seconds <= (MAX_WAIT_SECONDS if state.rests == "rate_limit" else _SOON_SECONDS)
    text = (
        f"{all_keys} in cooldown ({_WHY[state.rests]}) for another {format_duration(seconds)}; "
        f"add one with `hermes auth add {provider}`, or see `hermes auth list {provider}`."
    )
    return ProviderError(
        cause or text,
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
    """Return a duration in its largest unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"


_LOOK_AGAIN_SECONDS = 0.05
_MOST_RENEWALS = 2


class SharedKeyPool:
    """The keys of one provider for all sessions of this process; implements `KeyPool`."""

    def __init__(
        self,
        sources: KeySources,
        refresher: TokenRefresher,
        health: KeyHealth,
        world: World,
        *,
        strategy: PoolStrategy = "fill_first",
    ) -> None:
        self._sources = sources
        self._refresher = refresher
        self._health = health
        self._world = world
        self._strategy: PoolStrategy = strategy
        self._strikes: dict[str, int] = {}
        self._refused_tokens: dict[str, set[str]] = {}
        self._last = ""

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        cause = ""
        while True:
            keys = await self._keys()
            self._health.refresh()
            able = [key for key in keys if key.id not in avoid and self._is_usable(key)]
            claimed = await self._claim_one(able, keys, again)
            if claimed is None:
                await self._wait_for_probe(keys, avoid, cause)
                continue
            key, probe = claimed
            fresh = await self._refresh_if_needed(key)
            if isinstance(fresh, RefreshFailed):
                if not key.own:
                    text = fresh.text.rstrip(".")
                    cause = f"The {key.provider} login of {key.label} failed: {text}."
                avoid = avoid | {key.id}
                continue
            self._last = key.id
            await self._health.count(key)
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
        """Wait for running refreshes and write the request counts."""
        await self._refresher.close()
        await self._health.flush()

    async def _keys(self) -> tuple[StoredKey, ...]:
        try:
            return await self._sources.keys()
        except ConfigError as error:
            raise ProviderError(str(error), reason="auth") from error

    async def _find(self, credential: Credential) -> StoredKey | None:
        return next((key for key in await self._keys() if key.id == credential.id), None)

    def _is_usable(self, key: StoredKey) -> bool:
        """Return whether the key is healthy, or past its cooldown and not being probed."""
        now, state = self._world.clock.now(), self._health.state_of(key)
        alive = not key.dead and bool(key.renewal_token or not key.expires_within(0, now))
        return alive and not state.in_cooldown(now) and not state.is_being_probed(now)

    async def _claim_one(
        self, able: list[StoredKey], keys: tuple[StoredKey, ...], again: str
    ) -> tuple[StoredKey, str] | None:
        """Return one of the able keys, with the probe token if it had a cooldown."""
        while able:
            key = self._choose(able, keys, again)
            if not self._health.state_of(key).rests:
                return key, ""
            if probe := await self._health.claim(key):
                return key, probe
            able.remove(key)
        return None

    def _choose(self, able: list[StoredKey], keys: tuple[StoredKey, ...], again: str) -> StoredKey:
        for key in able:
            if key.id == again:
                return key
        match self._strategy:
            case "fill_first":
                return able[0]
            case "least_used":
                return min(able, key=self._health.requests)
            case "random":
                return self._world.chance.choice(able)
            case "round_robin":
                order = [key.id for key in keys]
                used = [(self._health.state_of(key).used_at, key.id) for key in keys]
                moment, last = max(used, default=(0.0, ""))
                last = self._last or (last if moment else "")
                start = order.index(last) + 1 if last in order else 0
                turn = (*order[start:], *order[:start])
                return min(able, key=lambda key: turn.index(key.id))

    async def _wait_for_probe(
        self, keys: tuple[StoredKey, ...], avoid: frozenset[str], cause: str
    ) -> None:
        """Wait a moment if another task is probing a key; raise ProviderError otherwise."""
        now = self._world.clock.now()
        candidates = (key for key in keys if key.id not in avoid and not key.dead)
        if not any(self._health.state_of(key).is_being_probed(now) for key in candidates):
            provider, state_of = self._sources.provider, self._health.state_of
            raise no_key_error(provider, keys, state_of, now, cause=cause)
        await self._world.clock.sleep(_LOOK_AGAIN_SECONDS)

    async def _refresh_if_needed(self, key: StoredKey) -> StoredKey | RefreshFailed:
        """Return the key with a valid token, refreshed if needed."""
        key = self._refresher.current(key)
        now = self._world.clock.now()
        if not key.renewal_token or not key.expires_within(self._refresher.skew_seconds, now):
            return key
        fresh = await self._refresher.refresh(key, stale=key.key)
        if not isinstance(fresh, RefreshFailed):
            return fresh
        if not fresh.final and not key.expires_within(0, now):
            return key
        if not (fresh.final and key.own):
            await self._health.start_cooldown(key, _refresh_error(fresh))
        return fresh

    async def _accept(self, credential: Credential) -> None:
        self._strikes.pop(credential.id, None)
        self._refused_tokens.pop(credential.id, None)
        await self._health.accept(credential)

    async def _handle_rate_limit(self, credential: Credential, error: ProviderError) -> KeyVerdict:
        """Handle a rate limit. If the server names no end, the limit may be transient, so the key
        gets a second try."""
        key = await self._find(credential)
        known = error.retry_after is not None or bool(credential.probe)
        if known or key is None or self._health.state_of(key).rests:
            return await self._start_cooldown(credential, error)
        if not await self._has_other_usable_key(key.id):
            return "stop"
        strikes = self._strikes[key.id] = self._strikes.get(key.id, 0) + 1
        return "again" if strikes < 2 else await self._start_cooldown(credential, error)

    async def _handle_refusal(self, credential: Credential, error: ProviderError) -> KeyVerdict:
        if lacks_permission(error):
            await self._accept(credential)
            return "rotate"
        key = await self._find(credential)
        if key is None or key.dead:
            return "rotate"
        key = self._refresher.current(key)
        if key.key and key.key != credential.key:
            # Refreshed meanwhile, by this process or another program.
            return "again"
        # Sessions that were refused with the same token share one refresh.
        refused = self._refused_tokens.setdefault(key.id, set())
        refused.add(credential.key)
        if key.renewal_token and len(refused) <= _MOST_RENEWALS:
            fresh = await self._refresher.refresh(key, stale=credential.key)
            if not isinstance(fresh, RefreshFailed):
                return "again"
            error = _refresh_error(fresh)
        return await self._start_cooldown(credential, error)

    async def _start_cooldown(self, credential: Credential, error: ProviderError) -> KeyVerdict:
        """Start the cooldown of a key. The last usable key gets no cooldown if its length is only a
        guess, because an attempt is better than none."""
        key = await self._find(credential)
        self._strikes.pop(credential.id, None)
        if key is None or key.dead:
            return "rotate"
        is_known = error.retry_after is not None or bool(credential.probe)
        if not is_known and not await self._has_other_usable_key(key.id):
            return "stop"
        await self._health.start_cooldown(key, error, probe=credential.probe)
        return "rotate"

    async def _has_other_usable_key(self, key_id: str) -> bool:
        keys = await self._keys()
        return any(self._is_usable(other) for other in keys if other.id != key_id)


def _refresh_error(failed: RefreshFailed) -> ProviderError:
    wait = None if failed.final else UNREACHABLE_SECONDS
    return ProviderError(failed.text, reason="auth", status=401, retry_after=wait)
