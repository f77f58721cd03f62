"""Tracks the health of one provider's keys: cooldowns, probes and request counts."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.world import World
from hermes.credentials.held import Held
from hermes.credentials.reactions import (
    PROBE_SECONDS,
    UNCLEAR_SECONDS,
    Cooldowns,
    kind_of,
    rest_seconds,
)
from hermes.credentials.states import KeyState, StateFile, States, T, forget_unused
from hermes.providers.keys import Credential

_NOTED_TOGETHER = 20
_NOTE_LENGTH = 200


class Conditions:
    """A view of the state that all processes share, as of the last `look` or change. A look costs
    one stat call. Request counts are written together with the next change."""

    def __init__(
        self, provider: str, states: StateFile, world: World, cooldowns: Cooldowns
    ) -> None:
        self._provider = provider
        self._states = states
        self._world = world
        self._cooldowns = cooldowns
        self._uses: dict[str, int] = {}
        self._seen: States = {}

    def look(self) -> None:
        self._seen = self._states.now()

    def of(self, held: Held) -> KeyState:
        return _matching(self._seen.get(self._name(held.id)), held)

    def requests(self, held: Held) -> int:
        return self.of(held).requests + self._uses.get(held.id, 0)

    async def claim(self, held: Held) -> str:
        """Claims the probe of a key after its cooldown; "" if another task was first."""
        token = self._world.new_id("probe")
        now = self._now()

        def change(states: States) -> str:
            state = states.get(self._name(held.id), KeyState())
            if state.is_resting(now) or state.is_probed(now):
                return ""
            states[self._name(held.id)] = replace(
                state, probe=token, probe_until=now + PROBE_SECONDS
            )
            return token

        return await self._change(change)

    async def accept(self, credential: Credential) -> None:
        """A probe succeeded. Calls that began before the cooldown prove nothing."""
        if not credential.probe:
            return

        def change(states: States) -> None:
            states[self._name(credential.id)] = KeyState(
                requests=states[self._name(credential.id)].requests,
                used_at=self._now(),
                fingerprint=states[self._name(credential.id)].fingerprint,
            )

        await self._change(lambda states: self._if_probing(credential, states, change))

    async def rest(self, held: Held, error: ProviderError, *, probe: str = "") -> None:
        await self._change(lambda states: self._rested(states, held, error, probe))

    def release(self, credential: Credential) -> None:
        """Lets another task probe the key after a short delay: the next probe may fail for the
        same reason."""
        until = self._now() + UNCLEAR_SECONDS

        def change(states: States) -> None:
            state = states[self._name(credential.id)]
            states[self._name(credential.id)] = replace(state, probe_until=until)

        if credential.probe:
            self._states.change_at_once(lambda held: self._if_probing(credential, held, change))

    async def count(self, held: Held) -> None:
        self._uses[held.id] = self._uses.get(held.id, 0) + 1
        if sum(self._uses.values()) >= _NOTED_TOGETHER:
            await self.flush()

    async def flush(self) -> None:
        if self._uses:
            await self._change(self._counted)

    async def _change(self, change: Callable[[States], T]) -> T:
        result = await self._states.change(change)
        self.look()
        return result

    def _if_probing(
        self, credential: Credential, states: States, change: Callable[[States], None]
    ) -> None:
        state = states.get(self._name(credential.id))
        if state is not None and state.probe == credential.probe:
            change(states)

    def _rested(self, states: States, held: Held, error: ProviderError, probe: str) -> None:
        now = self._now()
        state = _matching(states.get(self._name(held.id)), held)
        until = now + rest_seconds(error, failures=state.failures, cooldowns=self._cooldowns)
        if state.is_resting(now):
            # The call began before the cooldown.
            states[self._name(held.id)] = replace(state, until=max(state.until, until))
        elif not state.is_probed(now) or state.probe == probe:
            states[self._name(held.id)] = replace(
                state,
                rests=kind_of(error),
                since=now,
                until=until,
                failures=state.failures + 1,
                probe="",
                probe_until=0.0,
                code=error.status,
                note=str(error)[:_NOTE_LENGTH],
            )
        self._counted(states)

    def _counted(self, states: States) -> None:
        uses, self._uses = self._uses, {}
        now = self._now()
        for key_id, count in uses.items():
            state = states.get(self._name(key_id), KeyState())
            states[self._name(key_id)] = replace(
                state, requests=state.requests + count, used_at=now
            )
        forget_unused(states, now)

    def _name(self, key_id: str) -> str:
        return f"{self._provider}/{key_id}"

    def _now(self) -> float:
        return self._world.clock.now()


def _matching(state: KeyState | None, held: Held) -> KeyState:
    """The state, or a fresh one if it belongs to another secret with this id."""
    if state is None or (state.fingerprint and state.fingerprint != held.fingerprint):
        return KeyState(fingerprint=held.fingerprint)
    return state if state.fingerprint else replace(state, fingerprint=held.fingerprint)
