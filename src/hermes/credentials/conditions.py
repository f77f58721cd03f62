"""Tracks the health of one provider's keys: cooldowns, probes and request counts."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.world import World
from hermes.credentials.held import StoredKey
from hermes.credentials.reactions import (
    PROBE_SECONDS,
    UNCLEAR_SECONDS,
    KeyCooldowns,
    cooldown_reason,
    cooldown_seconds,
)
from hermes.credentials.states import KeyState, KeyStateFile, KeyStates, T, drop_unused
from hermes.providers.keys import Credential

_NOTED_TOGETHER = 20
_NOTE_LENGTH = 200


class KeyHealth:
    """A view of the state that all processes share, as of the last `look` or change. A look costs
    one stat call. Request counts are written together with the next change."""

    def __init__(
        self, provider: str, states: KeyStateFile, world: World, cooldowns: KeyCooldowns
    ) -> None:
        self._provider = provider
        self._states = states
        self._world = world
        self._cooldowns = cooldowns
        self._uses: dict[str, int] = {}
        self._seen: KeyStates = {}

    def refresh(self) -> None:
        self._seen = self._states.read()

    def state_of(self, held: StoredKey) -> KeyState:
        return _state_for(self._seen.get(self._name(held.id)), held)

    def requests(self, held: StoredKey) -> int:
        return self.state_of(held).requests + self._uses.get(held.id, 0)

    async def claim(self, held: StoredKey) -> str:
        """Claims the probe of a key after its cooldown; "" if another task was first."""
        token = self._world.new_id("probe")
        now = self._now()

        def change(states: KeyStates) -> str:
            state = states.get(self._name(held.id), KeyState())
            if state.in_cooldown(now) or state.is_being_probed(now):
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

        def change(states: KeyStates) -> None:
            states[self._name(credential.id)] = KeyState(
                requests=states[self._name(credential.id)].requests,
                used_at=self._now(),
                fingerprint=states[self._name(credential.id)].fingerprint,
            )

        await self._change(lambda states: self._if_probing(credential, states, change))

    async def start_cooldown(
        self, held: StoredKey, error: ProviderError, *, probe: str = ""
    ) -> None:
        await self._change(lambda states: self._apply_cooldown(states, held, error, probe))

    def release(self, credential: Credential) -> None:
        """Lets another task probe the key after a short delay: the next probe may fail for the
        same reason."""
        until = self._now() + UNCLEAR_SECONDS

        def change(states: KeyStates) -> None:
            state = states[self._name(credential.id)]
            states[self._name(credential.id)] = replace(state, probe_until=until)

        if credential.probe:
            self._states.try_change(lambda held: self._if_probing(credential, held, change))

    async def count(self, held: StoredKey) -> None:
        self._uses[held.id] = self._uses.get(held.id, 0) + 1
        if sum(self._uses.values()) >= _NOTED_TOGETHER:
            await self.flush()

    async def flush(self) -> None:
        if self._uses:
            await self._change(self._apply_counts)

    async def _change(self, change: Callable[[KeyStates], T]) -> T:
        result = await self._states.change(change)
        self.refresh()
        return result

    def _if_probing(
        self, credential: Credential, states: KeyStates, change: Callable[[KeyStates], None]
    ) -> None:
        state = states.get(self._name(credential.id))
        if state is not None and state.probe == credential.probe:
            change(states)

    def _apply_cooldown(
        self, states: KeyStates, held: StoredKey, error: ProviderError, probe: str
    ) -> None:
        now = self._now()
        state = _state_for(states.get(self._name(held.id)), held)
        until = now + cooldown_seconds(error, failures=state.failures, cooldowns=self._cooldowns)
        if state.in_cooldown(now):
            # The call began before the cooldown.
            states[self._name(held.id)] = replace(state, until=max(state.until, until))
        elif not state.is_being_probed(now) or state.probe == probe:
            states[self._name(held.id)] = replace(
                state,
                rests=cooldown_reason(error),
                since=now,
                until=until,
                failures=state.failures + 1,
                probe="",
                probe_until=0.0,
                code=error.status,
                note=str(error)[:_NOTE_LENGTH],
            )
        self._apply_counts(states)

    def _apply_counts(self, states: KeyStates) -> None:
        uses, self._uses = self._uses, {}
        now = self._now()
        for key_id, count in uses.items():
            state = states.get(self._name(key_id), KeyState())
            states[self._name(key_id)] = replace(
                state, requests=state.requests + count, used_at=now
            )
        drop_unused(states, now)

    def _name(self, key_id: str) -> str:
        return f"{self._provider}/{key_id}"

    def _now(self) -> float:
        return self._world.clock.now()


def _state_for(state: KeyState | None, held: StoredKey) -> KeyState:
    """The state, or a fresh one if it belongs to another secret with this id."""
    if state is None or (state.fingerprint and state.fingerprint != held.fingerprint):
        return KeyState(fingerprint=held.fingerprint)
    return state if state.fingerprint else replace(state, fingerprint=held.fingerprint)
