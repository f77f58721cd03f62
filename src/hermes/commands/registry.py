"""Slash commands, written once for every surface: what they are called and what comes of them."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable
from typing import Protocol

from hermes.app.build import App
from hermes.codec.values import Value
from hermes.core.session import Session


class Shown(Value):
    """Words for the person; nothing else happens."""

    text: str


class Moved(Value):
    """The surface goes to another session: an existing one, or a new one when it is empty."""

    session_id: str = ""
    title: str = ""
    text: str = ""


class Sent(Value):
    """The surface sends these words as if the person had typed them."""

    text: str


class Drafted(Value):
    """These words wait in the input, to be changed and sent."""

    draft: str
    text: str = ""


class Left(Value):
    """The surface ends."""


Outcome = Shown | Moved | Sent | Drafted | Left


class Here(Protocol):
    """Where a command is given."""

    @property
    def app(self) -> App: ...

    @property
    def session(self) -> Session: ...


class SlashCommand:
    """`arguments` shows what may follow the name. `surfaces` are the kinds of surface on which
    the command makes sense."""

    def __init__(
        self,
        name: str,
        words: str,
        run: Callable[[Here, str], Awaitable[Outcome]],
        *,
        arguments: str = "",
        aliases: tuple[str, ...] = (),
        category: str = "session",
        surfaces: tuple[str, ...] = ("cli", "message"),
    ) -> None:
        self.name = name
        self.words = words
        self.run = run
        self.arguments = arguments
        self.aliases = aliases
        self.category = category
        self.surfaces = surfaces


class Registry:
    """The commands of one surface. Names are told apart by letters alone: case and `_` for `-`
    do not matter, and the beginning of a name is enough when it is the only one."""

    def __init__(self, commands: tuple[SlashCommand, ...], surface: str) -> None:
        self.commands = tuple(each for each in commands if surface in each.surfaces)
        self._by_name = {
            name: command for command in self.commands for name in (command.name, *command.aliases)
        }

    def find(self, name: str) -> SlashCommand | None:
        plain = name.lower().replace("_", "-")
        if plain in self._by_name:
            return self._by_name[plain]
        starting = {c.name: c for n, c in self._by_name.items() if plain and n.startswith(plain)}
        return next(iter(starting.values())) if len(starting) == 1 else None

    async def run(self, line: str, here: Here) -> Outcome:
        """Carry out a line that begins with a slash."""
        name, _, argument = line.removeprefix("/").partition(" ")
        command = self.find(name)
        if command is None:
            near = difflib.get_close_matches(name.lower(), self._by_name, n=1)
            hint = f" Did you mean /{near[0]}?" if near else " /help lists them."
            return Shown(text=f"There is no command /{name}.{hint}")
        return await command.run(here, argument.strip())

    def help(self) -> str:
        width = max(len(_usage(command)) for command in self.commands)
        lines = (f"{_usage(each):{width}}  {each.words}" for each in self.commands)
        return "\n".join(lines)


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.arguments}".rstrip()
