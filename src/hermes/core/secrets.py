"""Secrets of a session: redaction of events, and values that commands use by name."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import UsageError
from hermes.core.events import DurableEvent, LiveEvent
from hermes.core.messages import ToolCall, ToolResult

# The label that replaces a secret: `[secret:github#1]`, a private key, a phone number.
LABEL = re.compile(
    r"\[(?:secret|phone|email|id):[a-z0-9_]+(?:#\d+)?\]|\[REDACTED[A-Z ]*\]|\+\d{4}\*{3,}\d{4}"
)


class EventRedactor(Protocol):
    """Removes secrets from the events of one session. An event that needs no change is returned as
    is."""

    def durable(self, event: DurableEvent) -> DurableEvent: ...

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        """Return the deltas that can be shown now. Characters that may become part of a secret are
        held back."""
        ...

    def rest(self) -> Iterable[LiveEvent]:
        """Return the held-back end of a reply that is complete."""
        ...

    def remarks(self) -> Iterable[LiveEvent]:
        """Return notices about what was redacted, each once."""
        ...

    def result(self, result: ToolResult) -> ToolResult: ...

    def lacks(self, call: ToolCall) -> bool:
        """Whether the arguments of a journaled call contain a redaction label instead of the
        model's text."""
        ...


class NoRedaction:
    """Redacts nothing."""

    def durable(self, event: DurableEvent) -> DurableEvent:
        return event

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        return (event,)

    def rest(self) -> Iterable[LiveEvent]:
        return ()

    def remarks(self) -> Iterable[LiveEvent]:
        return ()

    def result(self, result: ToolResult) -> ToolResult:
        return result

    def lacks(self, call: ToolCall) -> bool:
        return False


Captured = Literal["stored", "skipped", "unavailable"]
# Asks a person for a value without displaying it; None when the person declines.
AskSecret = Callable[[str, str, JsonObject], Awaitable[str | None]]


class Vault(Protocol):
    """Storage for secret values."""

    def get(self, name: str) -> str:
        """Return the value, or "" when there is none."""
        ...

    def names(self) -> tuple[str, ...]: ...

    def keep(self, name: str, value: str) -> None:
        """Store the value for this run and all later ones."""
        ...

    def may_pass(self, name: str) -> bool:
        """Whether commands may get this secret. They never get the keys of model providers."""
        ...


class SecretRequest(Value):
    """A secret that is needed. `prompt` asks a person for it; `help` says where to get it."""

    name: str
    prompt: str = ""
    help: str = ""


class SecretStore:
    """The secrets that one session can use. Before a name is passed on, the caller must have asked
    the gate for `UseSecret`. From then on commands of the session have the value in their
    environment."""

    def __init__(self, vault: Vault, ask: AskSecret | None = None) -> None:
        self._vault = vault
        self._ask = ask
        self._passed: dict[str, None] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names that have a value."""
        return self._vault.names()

    def missing(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return the names that have no value."""
        return tuple(name for name in wanted if not self._vault.get(name))

    def passable(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return the names that have a value and may go to commands."""
        return tuple(n for n in wanted if self._vault.may_pass(n) and self._vault.get(n))

    async def capture(self, need: SecretRequest) -> Captured:
        """Ask a person for the value and store it."""
        if self._ask is None:
            return "unavailable"
        value = await self._ask(need.name, need.prompt, {"help": need.help} if need.help else {})
        if not value:
            return "skipped"
        self.keep(need.name, value)
        return "stored"

    def keep(self, name: str, value: str) -> None:
        """Store the value. Raise UsageError when the name is not a valid variable name."""
        if not name.isascii() or not name.isidentifier():
            raise UsageError(f"{name!r} is not a valid secret name; use letters, digits and _.")
        self._vault.keep(name, value)

    def grant(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Give commands of this session these secrets. Return the names that they get."""
        granted = self.passable(wanted)
        self._passed.update(dict.fromkeys(granted))
        return granted

    def environment(self) -> dict[str, str]:
        """Return the secrets that commands get in their environment."""
        return {name: value for name in self._passed if (value := self._vault.get(name))}
