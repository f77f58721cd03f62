"""The state of each key, shared by all processes of a home: cooldown, probe and request count."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, TypeVar

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.files import replace_file
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.credentials.locks import HomeLock
from hermes.credentials.store import Signature, file_signature

T = TypeVar("T")

log = logging.getLogger(__name__)

UNUSED_SECONDS = 30 * 86_400.0
_PATIENCE_SECONDS = 3.0
# A cooldown that begins later than this was written before the clock was set back.
_SKEW_SECONDS = 60.0

CooldownReason = Literal["", "rate_limit", "billing", "auth"]


class KeyState(Value):
    """A key is in cooldown until `until`. After that, only the task that wrote `probe` may try it,
    until `probe_until` or the result of the probe. `failures` counts consecutive cooldowns. A
    state belongs to the secret with `fingerprint`."""

    rests: CooldownReason = ""
    since: float = 0.0
    until: float = 0.0
    failures: int = 0
    probe: str = ""
    probe_until: float = 0.0
    requests: int = 0
    used_at: float = 0.0
    code: int | None = None
    note: str = ""
    fingerprint: str = ""

    def in_cooldown(self, now: float) -> bool:
        return bool(self.rests) and self.until > now and self.since <= now + _SKEW_SECONDS

    def is_being_probed(self, now: float) -> bool:
        """Another task is testing whether the key works again."""
        return bool(self.rests and self.probe) and now < self.probe_until <= now + 3600


class _File(Value):
    version: int = 1
    keys: dict[str, KeyState] = {}


KeyStates = dict[str, KeyState]


class KeyStateFile:
    """Holds no secrets and may be deleted: then keys are tried once more. If it cannot be written,
    this process uses its own state."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.cache / "keys.json"
        self._lock = HomeLock(home, home.locks / "keys.lock", patience=_PATIENCE_SECONDS)
        self._known: tuple[Signature | None, KeyStates] = (None, {})

    def read(self) -> KeyStates:
        """States by `provider/id`; read-only."""
        found = file_signature(self.path)
        if found != self._known[0]:
            self._known = (found, self._read())
        return self._known[1]

    async def change(self, change: Callable[[KeyStates], T]) -> T:
        """Applies a change to the shared state."""
        try:
            async with self._lock.hold():
                return self._apply(change)
        except ConfigError as error:
            log.warning("key states are not shared", extra={"error": str(error)})
            states = dict(self.read())
            result = change(states)
            self._known = (file_signature(self.path), states)
            return result

    def try_change(self, change: Callable[[KeyStates], None]) -> bool:
        """Applies a change unless the file is locked."""
        try:
            with self._lock.try_hold() as inside:
                if inside:
                    self._apply(change)
                return inside
        except ConfigError:
            return False

    def _apply(self, change: Callable[[KeyStates], T]) -> T:
        before = self.read()
        states = dict(before)
        result = change(states)
        if states != before:
            replace_file(self._home, self.path, encode(_File(keys=states)), durable=False)
            self._known = (file_signature(self.path), states)
        return result

    def _read(self) -> KeyStates:
        try:
            return dict(decode(_File, self.path.read_bytes()).keys)
        except (OSError, DecodeError):
            return {}


def drop_unused(states: KeyStates, now: float) -> None:
    """Drops states that were not used for a month."""
    for name, state in list(states.items()):
        if now - max(state.used_at, state.since) > UNUSED_SECONDS:
            del states[name]
