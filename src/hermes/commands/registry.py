"""Slash commands, written once for every surface: what they are called and what comes of them."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from hermes.app.build import App
from hermes.codec.values import Value
from hermes.core.errors import HermesError
from hermes.core.session import Session

# A usage that is longer pushes its words to the right rather than those of all others.
WIDEST = 36


class Shown(Value):
    """Words for the person; nothing else happens."""

    text: str


class Moved(Value):
    """The surface goes to another session: an existing one, or a new one when it is empty. Once
    that is open, the one before it is stopped and ended for this reason. `clear` wants an empty
    screen first."""

    session_id: str = ""
    title: str = ""
    text: str = ""
    reason: str = "switched"
    clear: bool = False


class Sent(Value):
    """The surface sends these words as if the person had typed them, unless they are somebody
    else's."""

    text: str
    origin: str = "user"


class Drafted(Value):
    """These words wait in the input, to be changed and sent."""

    draft: str
    text: str = ""


class Left(Value):
    """The surface ends; with `delete` nothing of the session stays."""

    delete: bool = False


class Reloaded(Value):
    """The surface opens the session anew, with settings, keys and skills as they are then."""


class Begun(Value):
    """Work that goes on beside the conversation. The surface says `text` now and shows the words
    that `work` returns when it is done; it may cancel it when the person leaves. `name` is what
    the work is called meanwhile. Setting `stop`, if there is one, ends it early. `said` means that
    the words are an answer of a model, which may hold Markdown."""

    name: str
    work: Callable[[], Coroutine[Any, Any, str]]
    text: str = ""
    stop: asyncio.Event | None = None
    said: bool = False


class Attached(Value):
    """A picture goes with the next message."""

    path: str


class Copied(Value):
    """These words go to the clipboard of the person."""

    text: str


class Composing(Value):
    """The person's own editor opens, with this draft."""

    draft: str = ""


class Suggestion(Value):
    """What could be typed: the last `replaces` characters of the line become `text`."""

    text: str
    words: str = ""
    replaces: int = 0


Outcome = Shown | Moved | Sent | Drafted | Left | Reloaded | Begun | Attached | Copied | Composing


class Here(Protocol):
    """Where a command is given."""

    @property
    def app(self) -> App: ...

    @property
    def session(self) -> Session: ...

    @property
    def registry(self) -> Registry: ...


Complete = Callable[[Here, str], Awaitable[Sequence[Suggestion]]]


class Extra(Protocol):
    """Commands that are not known beforehand, such as one for each skill. Built-in ones win."""

    async def run(self, here: Here, line: str) -> Outcome | None:
        """None when the line begins with none of them."""
        ...

    async def names(self, here: Here) -> Sequence[Suggestion]: ...


class SlashCommand:
    """`arguments` shows what may follow the name; `complete` suggests it from what is there of
    it. `surfaces` are the kinds of surface on which the command makes sense."""

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
        complete: Complete | None = None,
    ) -> None:
        self.name = name
        self.words = words
        self.run = run
        self.arguments = arguments
        self.aliases = aliases
        self.category = category
        self.surfaces = surfaces
        self.complete = complete


class Registry:
    """The commands of one surface. Names are told apart by letters alone: case and `_` for `-`
    do not matter, and the beginning of a name is enough when it is the only one. `note` is what
    the help of this surface adds."""

    def __init__(
        self,
        commands: tuple[SlashCommand, ...],
        surface: str,
        *,
        note: str = "",
        extra: Extra | None = None,
    ) -> None:
        self._extra = extra
        self.commands = tuple(each for each in commands if surface in each.surfaces)
        self._note = note
        self._by_name = {
            name: command for command in self.commands for name in (command.name, *command.aliases)
        }

    def find(self, name: str) -> SlashCommand | None:
        plain = name.lower().replace("_", "-")
        if plain in self._by_name:
            return self._by_name[plain]
        starting = {c.name: c for n, c in self._by_name.items() if plain and n.startswith(plain)}
        return next(iter(starting.values())) if len(starting) == 1 else None

    def meant(self, text: str) -> bool:
        """Whether a text is a command, rather than a message that begins with a path."""
        return re.match(r"/[A-Za-z][\w.-]*(?:\s|$)", text) is not None

    async def run(self, line: str, here: Here) -> Outcome:
        """Carry out a line that begins with a slash. What cannot be done is said in words."""
        outcome = await self.run_known(line, here)
        if outcome is not None:
            return outcome
        name = line.removeprefix("/").partition(" ")[0]
        return Shown(text=f"There is no command /{name}.{self._hint(name)}")

    async def run_known(self, line: str, here: Here) -> Outcome | None:
        """The same, None when there is no such command."""
        name, _, argument = line.removeprefix("/").partition(" ")
        try:
            # The whole name of an extra one comes before the beginning of a built-in one.
            if self._extra is not None and name.lower().replace("_", "-") not in self._by_name:
                outcome = await self._extra.run(here, line)
                if outcome is not None:
                    return outcome
            command = self.find(name)
            if command is None:
                return None
            return await command.run(here, argument.strip())
        except HermesError as error:
            return Shown(text=str(error))

    async def complete(self, line: str, here: Here | None) -> Sequence[Suggestion]:
        """What could follow an unfinished line. Without a `here` only names are known."""
        if not line.startswith("/") or "\n" in line:
            return ()
        name, space, argument = line[1:].partition(" ")
        if not space:
            extra = await self.extra_names(here) if here else ()
            fitting = (each for each in extra if each.text.startswith(name.lower()))
            more = (Suggestion(text=e.text, words=e.words, replaces=len(name)) for e in fitting)
            return (*self._names(name), *more)
        command = self.find(name)
        if command is None or command.complete is None or here is None:
            return ()
        return await command.complete(here, argument)

    async def extra_names(self, here: Here) -> Sequence[Suggestion]:
        """The commands that are not built in: quick commands, those of plugins, skills."""
        return await self._extra.names(here) if self._extra is not None else ()

    def _names(self, begun: str) -> tuple[Suggestion, ...]:
        return tuple(
            Suggestion(text=name, words=command.words, replaces=len(begun))
            for name, command in self._by_name.items()
            if name.startswith(begun.lower().replace("_", "-"))
        )

    def _hint(self, name: str) -> str:
        plain = name.lower().replace("_", "-")
        starting = [known for known in self._by_name if plain and known.startswith(plain)]
        near = starting or difflib.get_close_matches(plain, self._by_name, n=1)
        if not near:
            return " /help lists them."
        return f" Did you mean {' or '.join('/' + each for each in near)}?"

    def help(self) -> str:
        return "\n".join((*self.lines(), *((self._note,) if self._note else ())))

    def about(self, name: str) -> str:
        """One command in full; words for the person when there is none of that name."""
        command = self.find(name.removeprefix("/"))
        if command is None:
            return f"There is no command /{name.removeprefix('/')}.{self._hint(name)}"
        return f"{_usage(command)}\n{command.words}{_others(command)}"

    def lines(self) -> tuple[str, ...]:
        """Every command in a line of its own."""
        width = min(WIDEST, max(len(_usage(command)) for command in self.commands))
        return tuple(
            f"{_usage(each):{width}}  {each.words}{_others(each)}" for each in self.commands
        )


def _usage(command: SlashCommand) -> str:
    return f"/{command.name} {command.arguments}".rstrip()


def _others(command: SlashCommand) -> str:
    return f" (also {', '.join('/' + alias for alias in command.aliases)})" * bool(command.aliases)
