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
from hermes.credentials.locks import SharedLock
from hermes.credentials.store import Signature, signature_of

T = TypeVar("T")

log = logging.getLogger(__name__)

FORGOTTEN_SECONDS = 30 * 86_400.0
_PATIENCE_SECONDS = 3.0
# A cooldown that begins later than this was written before the clock was set back.
_SKEW_SECONDS = 60.0

Rest = Literal["", "rate_limit", "billing", "auth"]


class KeyState(Value):
    """A key is in cooldown until `until`. After that, only the task that wrote `probe` may try it,
    until `probe_until` or the result of the probe. `failures` counts consecutive cooldowns. A
    state belongs to the secret with `fingerprint`."""

    rests: Rest = ""
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

    def is_resting(self, now: float) -> bool:
        return bool(self.rests) and self.until > now and self.since <= now + _SKEW_SECONDS

    def is_probed(self, now: float) -> bool:
        """Another task is testing whether the key works again."""
        return bool(self.rests and self.probe) and now < self.probe_until <= now + 3600


class _File(Value):
    version: int = 1
    keys: dict[str, KeyState] = {}


States = dict[str, KeyState]


class StateFile:
    """Holds no secrets and may be deleted: then keys are tried once more. If it cannot be written,
    this process uses its own state."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.cache / "keys.json"
        self._lock = SharedLock(home, home.locks / "keys.lock", patience=_PATIENCE_SECONDS)
        self._known: tuple[Signature | None, States] = (None, {})

    def now(self) -> States:
        """States by `provider/id`; read-only."""
        found = signature_of(self.path)
        if found != self._known[0]:
            self._known = (found, self._read())
        return self._known[1]

    async def change(self, change: Callable[[States], T]) -> T:
        """Applies a change to the shared state."""
        try:
            async with self._lock.held():
                return self._changed(change)
        except ConfigError as error:
            log.warning("key states are not shared", extra={"error": str(error)})
            states = dict(self.now())
            result = change(states)
            self._known = (signature_of(self.path), states)
            return result

    def change_at_once(self, change: Callable[[States], None]) -> bool:
        """Applies a change unless the file is locked."""
        try:
            with self._lock.held_at_once() as inside:
                if inside:
                    self._changed(change)
                return inside
        except ConfigError:
            return False

    def _changed(self, change: Callable[[States], T]) -> T:
        before = self.now()
        states = dict(before)
        result = change(states)
        if states != before:
            replace_file(self._home, self.path, encode(_File(keys=states)), durable=False)
            self._known = (signature_of(self.path), states)
        return result

    def _read(self) -> States:
        try:
            return dict(decode(_File, self.path.read_bytes()).keys)
        except (OSError, DecodeError):
            return {}


def forget_unused(states: States, now: float) -> None:
    """Drops states that were not used for a month."""
    for name, state in list(states.items()):
        if now - max(state.used_at, state.since) > FORGOTTEN_SECONDS:
            del states[name]
