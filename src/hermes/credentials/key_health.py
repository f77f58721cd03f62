"""Cooldowns, probes and request counts of keys, shared by all processes of a home."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from hermes.codec import file_lock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.config.home import Home, replace_file
from hermes.config.provider_settings import CooldownSettings
from hermes.core.errors import ConfigError, ProviderError
from hermes.core.world import World
from hermes.credentials.auth_file import Signature, file_signature, hold_lock
from hermes.credentials.stored_key import StoredKey
from hermes.providers.keys import Credential

T = TypeVar("T")

log = logging.getLogger(__name__)

UNUSED_SECONDS = 30 * 86_400.0
_PATIENCE_SECONDS = 3.0
# A cooldown that begins later than this was written before the clock was set back.
_SKEW_SECONDS = 60.0

CooldownReason = Literal["", "rate_limit", "billing", "auth"]


class KeyState(Value):
    """The health of one key."""

    rests: CooldownReason = ""
    since: float = 0.0
    until: float = 0.0  # end of the cooldown
    failures: int = 0  # consecutive cooldowns
    probe: str = ""  # the task that may try the key after the cooldown
    probe_until: float = 0.0  # until then no other task may try it
    requests: int = 0
    used_at: float = 0.0
    code: int | None = None
    note: str = ""
    fingerprint: str = ""  # of the secret that this state belongs to

    def in_cooldown(self, now: float) -> bool:
        return bool(self.rests) and self.until > now and self.since <= now + _SKEW_SECONDS

    def is_being_probed(self, now: float) -> bool:
        """Return whether another task is testing whether the key works again."""
        return bool(self.rests and self.probe) and now < self.probe_until <= now + 3600


class _File(Value):
    version: int = 1
    keys: dict[str, KeyState] = {}


KeyStates = dict[str, KeyState]


class KeyStateFile:
    """The file of key states. It holds no secrets and may be deleted: then keys are tried once
    more. If it cannot be written, this process uses its own state."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.cache / "keys.json"
        self._known: tuple[Signature | None, KeyStates] = (None, {})

    def read(self) -> KeyStates:
        """Return the states by `provider/id`; read-only."""
        found = file_signature(self.path)
        if found != self._known[0]:
            try:
                states = dict(decode(_File, self.path.read_bytes()).keys)
            except (OSError, DecodeError):
                states = {}
            self._known = (found, states)
        return self._known[1]

    async def change(self, change: Callable[[KeyStates], T]) -> T:
        """Apply a change to the shared state."""
        try:
            async with hold_lock(self._lock_file(), patience=_PATIENCE_SECONDS):
                return self._apply(change)
        except ConfigError as error:
            log.warning("key states are not shared", extra={"error": str(error)})
            states = dict(self.read())
            result = change(states)
            self._known = (file_signature(self.path), states)
            return result

    def try_change(self, change: Callable[[KeyStates], None]) -> bool:
        """Apply a change unless the file is locked."""
        try:
            with file_lock.hold_lock(self._lock_file(), timeout=0) as is_held:
                if is_held:
                    self._apply(change)
                return is_held
        except (ConfigError, OSError):
            return False

    def _lock_file(self) -> Path:
        return self._home.ensure_folder(self._home.locks) / "keys.lock"

    def _apply(self, change: Callable[[KeyStates], T]) -> T:
        before = self.read()
        states = dict(before)
        result = change(states)
        if states != before:
            replace_file(self._home, self.path, encode(_File(keys=states)), durable=False)
            self._known = (file_signature(self.path), states)
        return result


def drop_unused(states: KeyStates, now: float) -> None:
    """Drop states that were not used for a month."""
    for name, state in list(states.items()):
        if now - max(state.used_at, state.since) > UNUSED_SECONDS:
            del states[name]


FIRST_GUESS_SECONDS = 60.0
LONGEST_SECONDS = 8 * 86_400.0
LONGEST_REFUSED_SECONDS = 86_400.0
PROBE_SECONDS = 120.0
UNCLEAR_SECONDS = 5.0
UNREACHABLE_SECONDS = 10.0
_SHORTEST_SECONDS = 0.5


def cooldown_reason(error: ProviderError) -> CooldownReason:
    """Return why this error starts a cooldown; "" if it is not about the key."""
    match error.reason:
        case "rate_limit" | "billing":
            return error.reason
        case "auth" | "auth_permanent":
            return "auth"
        case _:
            return ""


def cooldown_seconds(error: ProviderError, *, failures: int, cooldowns: CooldownSettings) -> float:
    """Return the length of a cooldown. `failures` are the previous cooldowns without a success in
    between. Without a time from the server, the cooldown starts short, because most limits end
    soon, and grows with each failure. The cooldown of a refused key grows in the same way."""
    retry_after, times = error.retry_after, min(failures, 16)
    match cooldown_reason(error):
        case "rate_limit" | "auth" if retry_after is not None:
            return min(max(retry_after, _SHORTEST_SECONDS), LONGEST_SECONDS)
        case "rate_limit":
            return min(FIRST_GUESS_SECONDS * 4.0**times, cooldowns.rate_limit)
        case "billing":
            return cooldowns.billing
        case _:
            most = max(cooldowns.auth, LONGEST_REFUSED_SECONDS)
            return min(cooldowns.auth * 2.0**times, most)


def lacks_permission(error: ProviderError) -> bool:
    """Return whether the key is valid but lacks permission; neither a cooldown nor a refresh
    helps."""
    return error.reason == "auth" and error.status == 403


def accepts_key(error: ProviderError) -> bool:
    """Return whether the provider rejected the request itself, and so accepted the key."""
    status = error.status or 0
    return 400 <= status < 500 and status not in (401, 402, 403, 408, 429)


_NOTED_TOGETHER = 20
_NOTE_LENGTH = 200


class KeyHealth:
    """A view of the state that all processes share, as of the last `refresh` or change. A
    refresh costs one stat call. Request counts are written together with the next change."""

    def __init__(
        self, provider: str, states: KeyStateFile, world: World, cooldowns: CooldownSettings
    ) -> None:
        self._provider = provider
        self._states = states
        self._world = world
        self._cooldowns = cooldowns
        self._uses: dict[str, int] = {}
        self._seen: KeyStates = {}

    def refresh(self) -> None:
        self._seen = self._states.read()

    def state_of(self, key: StoredKey) -> KeyState:
        return _state_for(self._seen.get(self._name(key.id)), key)

    def requests(self, key: StoredKey) -> int:
        return self.state_of(key).requests + self._uses.get(key.id, 0)

    async def claim(self, key: StoredKey) -> str:
        """Claim the probe of a key after its cooldown; "" if another task was first."""
        token = self._world.new_id("probe")
        now = self._now()

        def change(states: KeyStates) -> str:
            state = states.get(self._name(key.id), KeyState())
            if state.in_cooldown(now) or state.is_being_probed(now):
                return ""
            states[self._name(key.id)] = replace(
                state, probe=token, probe_until=now + PROBE_SECONDS
            )
            return token

        return await self._change(change)

    async def accept(self, credential: Credential) -> None:
        """Record that a probe succeeded. Calls that began before the cooldown prove nothing."""

        def reset(states: KeyStates) -> None:
            if state := self._probed_state(credential, states):
                states[self._name(credential.id)] = KeyState(
                    requests=state.requests, used_at=self._now(), fingerprint=state.fingerprint
                )

        if credential.probe:
            await self._change(reset)

    async def start_cooldown(
        self, key: StoredKey, error: ProviderError, *, probe: str = ""
    ) -> None:
        await self._change(lambda states: self._apply_cooldown(states, key, error, probe))

    def release(self, credential: Credential) -> None:
        """Let another task probe the key after a short delay: the next probe may fail for the same
        reason."""

        def delay(states: KeyStates) -> None:
            if state := self._probed_state(credential, states):
                until = self._now() + UNCLEAR_SECONDS
                states[self._name(credential.id)] = replace(state, probe_until=until)

        if credential.probe:
            self._states.try_change(delay)

    async def count(self, key: StoredKey) -> None:
        self._uses[key.id] = self._uses.get(key.id, 0) + 1
        if sum(self._uses.values()) >= _NOTED_TOGETHER:
            await self.flush()

    async def flush(self) -> None:
        if self._uses:
            await self._change(self._apply_counts)

    async def _change(self, change: Callable[[KeyStates], T]) -> T:
        result = await self._states.change(change)
        self.refresh()
        return result

    def _probed_state(self, credential: Credential, states: KeyStates) -> KeyState | None:
        """Return the state, if this credential's probe is the current one."""
        state = states.get(self._name(credential.id))
        return state if state is not None and state.probe == credential.probe else None

    def _apply_cooldown(
        self, states: KeyStates, key: StoredKey, error: ProviderError, probe: str
    ) -> None:
        now = self._now()
        state = _state_for(states.get(self._name(key.id)), key)
        until = now + cooldown_seconds(error, failures=state.failures, cooldowns=self._cooldowns)
        if state.in_cooldown(now):
            # The call began before the cooldown.
            states[self._name(key.id)] = replace(state, until=max(state.until, until))
        elif not state.is_being_probed(now) or state.probe == probe:
            states[self._name(key.id)] = replace(
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


def _state_for(state: KeyState | None, key: StoredKey) -> KeyState:
    """Return the state, or a fresh one if it belongs to another secret with this id."""
    if state is None or (state.fingerprint and state.fingerprint != key.fingerprint):
        return KeyState(fingerprint=key.fingerprint)
    return state if state.fingerprint else replace(state, fingerprint=key.fingerprint)
