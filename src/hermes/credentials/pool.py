"""Chooses among the keys of a provider and reacts to their failures."""

from __future__ import annotations

from hermes.config.model_settings import PoolStrategy
from hermes.core.errors import ConfigError, ProviderError
from hermes.core.world import World
from hermes.credentials.conditions import Conditions
from hermes.credentials.held import Held
from hermes.credentials.holdings import Holdings
from hermes.credentials.reactions import (
    UNREACHABLE_SECONDS,
    accepts_key,
    is_entitlement,
    kind_of,
)
from hermes.credentials.renewal import Failed, Renewal
from hermes.credentials.shortage import shortage
from hermes.credentials.strategy import choose
from hermes.providers.keys import Credential, Verdict

_LOOK_AGAIN_SECONDS = 0.05
_MOST_RENEWALS = 2


class Pool:
    """The keys of one provider for all sessions of this process; implements Keys."""

    def __init__(
        self,
        holdings: Holdings,
        renewal: Renewal,
        conditions: Conditions,
        world: World,
        *,
        strategy: PoolStrategy = "fill_first",
    ) -> None:
        self._holdings = holdings
        self._renewal = renewal
        self._conditions = conditions
        self._world = world
        self._strategy: PoolStrategy = strategy
        self._strikes: dict[str, int] = {}
        self._refused_tokens: dict[str, set[str]] = {}
        self._last = ""

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        while True:
            keys = await self._all()
            self._conditions.look()
            able = [held for held in keys if held.id not in avoid and self._is_able(held)]
            found = await self._taken(able, keys, again)
            if found is None:
                await self._wait_for_a_try(keys, avoid)
                continue
            held, probe = found
            fresh = await self._ready(held)
            if fresh is None:
                avoid = avoid | {held.id}
                continue
            self._last = held.id
            await self._conditions.count(held)
            return fresh.credential(probe)

    async def report(self, credential: Credential, error: ProviderError | None) -> Verdict:
        if error is None:
            await self._accepted(credential)
            return "again"
        self._conditions.look()
        match kind_of(error):
            case "rate_limit":
                return await self._limited(credential, error)
            case "billing":
                return await self._rests(credential, error)
            case "auth":
                return await self._refused(credential, error)
            case _ if accepts_key(error):
                await self._accepted(credential)
            case _:
                self.release(credential)
        return "stop"

    def release(self, credential: Credential) -> None:
        self._conditions.release(credential)

    async def close(self) -> None:
        """Waits for running refreshes and writes the request counts."""
        await self._renewal.close()
        await self._conditions.flush()

    async def _all(self) -> tuple[Held, ...]:
        try:
            return await self._holdings.now()
        except ConfigError as error:
            raise ProviderError(str(error), reason="auth") from error

    async def _find(self, credential: Credential) -> Held | None:
        return next((held for held in await self._all() if held.id == credential.id), None)

    def _is_able(self, held: Held) -> bool:
        """Whether the key is healthy, or past its cooldown and not being probed."""
        now, state = self._world.clock.now(), self._conditions.of(held)
        alive = not held.dead and bool(held.renewal_token or not held.expires_within(0, now))
        return alive and not state.is_resting(now) and not state.is_probed(now)

    async def _taken(
        self, able: list[Held], keys: tuple[Held, ...], again: str
    ) -> tuple[Held, str] | None:
        """One of the able keys, with the probe token if it had a cooldown."""
        while able:
            held = self._chosen(able, keys, again)
            if not self._conditions.of(held).rests:
                return held, ""
            if probe := await self._conditions.claim(held):
                return held, probe
            able.remove(held)
        return None

    def _chosen(self, able: list[Held], keys: tuple[Held, ...], again: str) -> Held:
        for held in able:
            if held.id == again:
                return held
        return choose(
            self._strategy,
            able,
            requests=self._conditions.requests,
            order=[held.id for held in keys],
            last=self._last or self._last_of_all(keys),
            chance=self._world.chance,
        )

    def _last_of_all(self, keys: tuple[Held, ...]) -> str:
        used = [(self._conditions.of(held).used_at, held.id) for held in keys]
        moment, key_id = max(used, default=(0.0, ""))
        return key_id if moment else ""

    async def _wait_for_a_try(self, keys: tuple[Held, ...], avoid: frozenset[str]) -> None:
        """Waits a moment if another task is probing a key; raises ProviderError otherwise."""
        now = self._world.clock.now()
        candidates = (held for held in keys if held.id not in avoid and not held.dead)
        if not any(self._conditions.of(held).is_probed(now) for held in candidates):
            raise shortage(self._holdings.provider, keys, self._conditions.of, now)
        await self._world.clock.sleep(_LOOK_AGAIN_SECONDS)

    async def _ready(self, held: Held) -> Held | None:
        """The key with a valid token, refreshed if needed; None if that fails."""
        held = self._renewal.current(held)
        now = self._world.clock.now()
        if not held.renewal_token or not held.expires_within(self._renewal.skew_seconds, now):
            return held
        fresh = await self._renewal.renewed(held, stale=held.key)
        if not isinstance(fresh, Failed):
            return fresh
        if not fresh.final and not held.expires_within(0, now):
            return held
        if not (fresh.final and held.own):
            await self._conditions.rest(held, _not_renewed(fresh))
        return None

    async def _accepted(self, credential: Credential) -> None:
        self._strikes.pop(credential.id, None)
        self._refused_tokens.pop(credential.id, None)
        await self._conditions.accept(credential)

    async def _limited(self, credential: Credential, error: ProviderError) -> Verdict:
        """A rate limit without an end may be transient: the key gets a second try."""
        held = await self._find(credential)
        known = error.retry_after is not None or bool(credential.probe)
        if known or held is None or self._conditions.of(held).rests:
            return await self._rests(credential, error)
        if not await self._others_are_able(held.id):
            return "stop"
        strikes = self._strikes[held.id] = self._strikes.get(held.id, 0) + 1
        return "again" if strikes < 2 else await self._rests(credential, error)

    async def _refused(self, credential: Credential, error: ProviderError) -> Verdict:
        if is_entitlement(error):
            await self._accepted(credential)
            return "rotate"
        held = await self._find(credential)
        if held is None or held.dead:
            return "rotate"
        held = self._renewal.current(held)
        if held.key and held.key != credential.key:
            # Refreshed meanwhile, by this process or another program.
            return "again"
        # Sessions that were refused with the same token share one refresh.
        refused = self._refused_tokens.setdefault(held.id, set())
        refused.add(credential.key)
        if held.renewal_token and len(refused) <= _MOST_RENEWALS:
            fresh = await self._renewal.renewed(held, stale=credential.key)
            if not isinstance(fresh, Failed):
                return "again"
            error = _not_renewed(fresh)
        return await self._rests(credential, error)

    async def _rests(self, credential: Credential, error: ProviderError) -> Verdict:
        """Starts the cooldown of a key. The last usable key gets none if its length is only a
        guess: any attempt is better than none."""
        held = await self._find(credential)
        self._strikes.pop(credential.id, None)
        if held is None or held.dead:
            return "rotate"
        is_known = error.retry_after is not None or bool(credential.probe)
        if not is_known and not await self._others_are_able(held.id):
            return "stop"
        await self._conditions.rest(held, error, probe=credential.probe)
        return "rotate"

    async def _others_are_able(self, key_id: str) -> bool:
        keys = await self._all()
        return any(self._is_able(other) for other in keys if other.id != key_id)


def _not_renewed(failed: Failed) -> ProviderError:
    wait = None if failed.final else UNREACHABLE_SECONDS
    return ProviderError(failed.text, reason="auth", status=401, retry_after=wait)
