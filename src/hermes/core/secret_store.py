"""The secrets of a home as tools may use them: by name. Values go to commands, never to a text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import UsageError

Captured = Literal["stored", "skipped", "unavailable"]
# Asks a person for a value, unseen by everybody else; None when they would rather not.
AskSecret = Callable[[str, str, JsonObject], Awaitable[str | None]]


class Vault(Protocol):
    """Where values are kept."""

    def get(self, name: str) -> str:
        """The value, or "" when there is none."""
        ...

    def names(self) -> tuple[str, ...]: ...

    def keep(self, name: str, value: str) -> None:
        """For this run and all later ones."""
        ...

    def may_pass(self, name: str) -> bool:
        """False for what no command may ever get: the keys of model providers."""
        ...


class Need(Value):
    """A secret that somebody needs: `prompt` asks a person for it, `help` says where it is from."""

    name: str
    prompt: str = ""
    help: str = ""


class SecretStore:
    """Of one session. Whoever lets a name pass on has asked the gate for `UseSecret` before; from
    then on commands of the session find the value in their environment."""

    def __init__(self, vault: Vault, ask: AskSecret | None = None) -> None:
        self._vault = vault
        self._ask = ask
        self._passed: dict[str, None] = {}

    def names(self) -> tuple[str, ...]:
        """Those that have a value."""
        return self._vault.names()

    def missing(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Those of them that have no value."""
        return tuple(name for name in wanted if not self._vault.get(name))

    def passable(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Those of them that have a value and may go to commands at all."""
        return tuple(n for n in wanted if self._vault.may_pass(n) and self._vault.get(n))

    async def capture(self, need: Need) -> Captured:
        """Have a person give the value and keep it, where a person can be asked unseen."""
        if self._ask is None:
            return "unavailable"
        given = await self._ask(need.name, need.prompt, {"help": need.help} if need.help else {})
        if not given:
            return "skipped"
        self.keep(need.name, given)
        return "stored"

    def keep(self, name: str, value: str) -> None:
        """UsageError when that is not a name of a variable."""
        if not name.isascii() or not name.isidentifier():
            raise UsageError(f"{name!r} is no name for a secret; use letters, digits and _.")
        self._vault.keep(name, value)

    def pass_on(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Let commands of this session have these; the names of those that they really get."""
        granted = self.passable(wanted)
        self._passed.update(dict.fromkeys(granted))
        return granted

    def lent(self) -> dict[str, str]:
        """What commands get in their environment now."""
        return {name: value for name in self._passed if (value := self._vault.get(name))}
