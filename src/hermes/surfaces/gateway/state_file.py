"""The state of the gateway as other processes see it: one JSON file, replaced atomically at every
change and by a heartbeat."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.config.home import Home, replace_file
from hermes.core.errors import ConfigError
from hermes.core.world import Clock

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 30.0

GatewayPhase = Literal["starting", "running", "draining", "stopped", "startup_failed"]
PlatformPhase = Literal["connecting", "connected", "retrying", "paused", "fatal"]


class PlatformState(Value):
    """The connection of one platform. `account` is the name of the bot."""

    state: PlatformPhase
    since: float
    account: str = ""
    error_code: str = ""
    error_message: str = ""
    next_retry_at: float = 0.0


class TaskState(Value):
    """A background task that failed."""

    state: Literal["restarting", "dead"]
    since: float
    failures: int
    error: str


class GatewayState(Value):
    gateway_state: GatewayPhase = "stopped"
    pid: int = 0
    version: str = ""
    profile: str = ""
    started_at: float = 0.0
    updated_at: float = 0.0
    platforms: dict[str, PlatformState] = {}
    tasks: dict[str, TaskState] = {}
    # Turns that run now.
    running: int = 0
    exit_reason: str = ""
    # Starts after a process that did not stop by itself.
    unclean_starts: tuple[float, ...] = ()


def state_path(home: Home) -> Path:
    return home.root / "gateway_state.json"


def read_state(home: Home) -> GatewayState | None:
    try:
        return decode(GatewayState, state_path(home).read_bytes())
    except (OSError, DecodeError):
        return None


class StateFile:
    """Writes the state. A failing disk must not stop the gateway, so failures are only logged."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self.state = GatewayState()

    def update(self, **changes: object) -> None:
        self.state = replace(self.state, **changes, updated_at=self._clock.now())
        try:
            # The next heartbeat repairs what a power cut may lose.
            replace_file(self._home, state_path(self._home), encode(self.state), durable=False)
        except ConfigError as error:
            log.warning("cannot write the gateway state", extra={"why": str(error)})

    def set_platform(self, name: str, state: PlatformState) -> None:
        self.update(platforms={**self.state.platforms, name: state})

    def set_task(self, name: str, state: TaskState | None) -> None:
        """Without a state, the task is well again."""
        others = {each: held for each, held in self.state.tasks.items() if each != name}
        if state is not None:
            others[name] = state
        if others != self.state.tasks:
            self.update(tasks=others)
