"""Secrets that tools use by name. Their values go to commands, never into text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import UsageError

Captured = Literal["stored", "skipped", "unavailable"]
# Asks a person for a value without displaying it; None when the person declines.
AskSecret = Callable[[str, str, JsonObject], Awaitable[str | None]]


class Vault(Protocol):
    """Storage for secret values."""

    def get(self, name: str) -> str:
        """The value, or "" when there is none."""
        ...

    def names(self) -> tuple[str, ...]: ...

    def keep(self, name: str, value: str) -> None:
        """Store the value for this run and all later ones."""
        ...

    def may_pass(self, name: str) -> bool:
        """False for secrets that no command may get: the keys of model providers."""
        ...


class SecretRequest(Value):
    """A secret that is needed. `prompt` asks a person for it; `help` says where to get it."""

    name: str
    prompt: str = ""
    help: str = ""


class SecretStore:
    """One per session. Before a name is passed on, the caller must have asked the gate for
    `UseSecret`. From then on commands of the session have the value in their environment."""

    def __init__(self, vault: Vault, ask: AskSecret | None = None) -> None:
        self._vault = vault
        self._ask = ask
        self._passed: dict[str, None] = {}

    def names(self) -> tuple[str, ...]:
        """The names that have a value."""
        return self._vault.names()

    def missing(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The names that have no value."""
        return tuple(name for name in wanted if not self._vault.get(name))

    def passable(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The names that have a value and may go to commands."""
        return tuple(n for n in wanted if self._vault.may_pass(n) and self._vault.get(n))

    async def capture(self, need: SecretRequest) -> Captured:
        """Ask a person for the value and store it."""
        if self._ask is None:
            return "unavailable"
        given = await self._ask(need.name, need.prompt, {"help": need.help} if need.help else {})
        if not given:
            return "skipped"
        self.keep(need.name, given)
        return "stored"

    def keep(self, name: str, value: str) -> None:
        """UsageError when the name is not a valid variable name."""
        if not name.isascii() or not name.isidentifier():
            raise UsageError(f"{name!r} is not a valid secret name; use letters, digits and _.")
        self._vault.keep(name, value)

    def grant(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Give commands of this session these secrets. Returns the names that they get."""
        granted = self.passable(wanted)
        self._passed.update(dict.fromkeys(granted))
        return granted

    def environment(self) -> dict[str, str]:
        """The secrets that commands get in their environment."""
        return {name: value for name in self._passed if (value := self._vault.get(name))}
