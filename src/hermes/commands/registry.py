"""The slash command registry and the outcomes that surfaces carry out."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, Protocol

from hermes.app.app import App
from hermes.codec.values import Value
from hermes.core.errors import HermesError
from hermes.core.messages import ToolCall
from hermes.core.session import Session

# A longer usage shifts only its own description to the right.
MAX_USAGE_WIDTH = 36
# The words that can be typed as first argument: `list` and `enable` in `[list|enable NAME]`.
_CHOICES = re.compile(r"(?:^\[?|\|)([a-z][a-z-]*)")


class ShowText(Value):
    """Show this text."""

    text: str


class SwitchSession(Value):
    """Switch to another session."""

    # Empty for a new session.
    session_id: str = ""
    title: str = ""
    text: str = ""
    # Why the previous session ends once the other is open.
    reason: str = "switched"
    # Clear the screen first.
    clear: bool = False


class SendMessage(Value):
    """Send this text as a message of `origin`. Its turn begins with `calls`."""

    text: str
    origin: str = "user"
    calls: tuple[ToolCall, ...] = ()


class Quit(Value):
    """Quit; with `delete` the session is deleted."""

    delete: bool = False


class Reload(Value):
    """Reopen the session with current settings, keys and skills."""


class StartWork(Value):
    """Start work in the background and show its result when it is done; cancel it on exit."""

    # Labels the running work.
    name: str
    work: Callable[[], Coroutine[Any, Any, str]]
    # Shown now.
    text: str = ""
    # Set it to end the work early.
    stop: asyncio.Event | None = None
    # The result is a model's answer, which may contain Markdown.
    is_answer: bool = False
    # The session that does the work, if it continues after a restart.
    task_id: str = ""


class AttachImage(Value):
    """Attach an image to the next message."""

    path: str
    # What was attached.
    text: str = ""


class CopyText(Value):
    """Copy this text to the clipboard."""

    text: str


class OpenEditor(Value):
    """Open the user's editor with this draft."""

    draft: str = ""


class Suggestion(Value):
    """A completion: `text` replaces the last `replaces` characters of the line."""

    text: str
    description: str = ""
    replaces: int = 0


Outcome = (
    ShowText
    | SwitchSession
    | SendMessage
    | Quit
    | Reload
    | StartWork
    | AttachImage
    | CopyText
    | OpenEditor
)


class BackgroundWork(Protocol):
    """The work that `StartWork` began on a surface."""

    @property
    def names(self) -> tuple[str, ...]:
        """What runs, oldest first."""

    @property
    def task_ids(self) -> tuple[str, ...]:
        """The sessions that work; see `StartWork.task_id`."""

    def cancel(self) -> None:
        """Stop all of it."""


class CommandContext(Protocol):
    """The chat or editor session in which a command runs."""

    @property
    def app(self) -> App: ...

    @property
    def session(self) -> Session: ...

    @property
    def registry(self) -> CommandRegistry: ...

    @property
    def background_work(self) -> BackgroundWork | None:
        """None where commands wait for their work."""


SurfaceKind = Literal["cli", "editor", "gateway"]
Completer = Callable[[CommandContext, str], Awaitable[Sequence[Suggestion]]]


class DynamicCommands(Protocol):
    """Commands that are known only at run time, such as one per skill. Built-in commands take
    precedence."""

    async def run(self, here: CommandContext, line: str) -> Outcome | None:
        """None when the line is not such a command."""

    async def names(self, here: CommandContext) -> Sequence[Suggestion]: ...


class SlashCommand(NamedTuple):
    """A slash command."""

    # The name and the arguments, with placeholders in capitals.
    usage: str
    help: str
    # Returns an outcome, a text to show, or None if the arguments are wrong.
    run: Callable[[CommandContext, str], Awaitable[Outcome | str | None]]
    aliases: tuple[str, ...] = ()
    # Where the command exists.
    surfaces: tuple[SurfaceKind, ...] = ("cli", "editor", "gateway")
    # Suggests arguments; by default the words in `usage`.
    complete: Completer | None = None
    # The heading of the command in the help.
    group: str = ""

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]

    @property
    def arguments(self) -> str:
        return self.usage.partition(" ")[2]


class CommandRegistry:
    """The commands of one surface. Case does not matter, `_` equals `-`, and a unique prefix of a
    name is enough. `note` is appended to the help text."""

    def __init__(
        self,
        commands: tuple[SlashCommand, ...],
        surface: SurfaceKind,
        *,
        note: str = "",
        extra: Sequence[DynamicCommands] = (),
    ) -> None:
        self._extra = extra
        self.commands = tuple(each for each in commands if surface in each.surfaces)
        self._note = note
        self._by_name = {
            name: command for command in self.commands for name in (command.name, *command.aliases)
        }

    def find(self, name: str) -> SlashCommand | None:
        plain = _normalize(name)
        if plain in self._by_name:
            return self._by_name[plain]
        starting = {c.name: c for n, c in self._by_name.items() if plain and n.startswith(plain)}
        return next(iter(starting.values())) if len(starting) == 1 else None

    def is_command(self, text: str) -> bool:
        """Whether the text is a command and not a message that begins with a path."""
        return re.match(r"/[A-Za-z][\w.-]*(?:\s|$)", text) is not None

    async def run(self, line: str, here: CommandContext) -> Outcome:
        """Run a line that begins with a slash. Errors become text."""
        outcome = await self.run_known(line, here)
        if outcome is not None:
            return outcome
        name = line.removeprefix("/").partition(" ")[0]
        return ShowText(text=f"There is no command /{name}.{self._hint(name)}")

    async def run_known(self, line: str, here: CommandContext) -> Outcome | None:
        """Run the line like `run`, but return None if no command has that name."""
        name, argument = split_line(line)
        try:
            # The full name of a dynamic command takes precedence over a prefix of a built-in one.
            for extra in self._extra if name not in self._by_name else ():
                outcome = await extra.run(here, line)
                if outcome is not None:
                    return outcome
            command = self.find(name)
            if command is None:
                return None
            done = await command.run(here, argument)
            if done is None:
                done = f"Use {_describe(command)}"
            return ShowText(text=done) if isinstance(done, str) else done
        except HermesError as error:
            return ShowText(text=str(error))

    async def complete(self, line: str, here: CommandContext | None) -> Sequence[Suggestion]:
        """Completions of an unfinished line; without `here` only built-in names."""
        if not line.startswith("/") or "\n" in line:
            return ()
        name, space, argument = line[1:].partition(" ")
        if space:
            command = self.find(name)
            if command is None or here is None:
                return ()
            if command.complete is not None:
                return await command.complete(here, argument)
            return suggest(_CHOICES.findall(command.arguments), argument)
        names = {known: command.help for known, command in self._by_name.items()}
        extra = await self.extra_names(here) if here else ()
        others = {each.text: each.description for each in extra if each.text not in names}
        return (*suggest(names, _normalize(name)), *suggest(others, name.lower()))

    async def extra_names(self, here: CommandContext) -> Sequence[Suggestion]:
        """The dynamic commands: quick commands, plugin commands and skills."""
        return [name for extra in self._extra for name in await extra.names(here)]

    def _hint(self, name: str) -> str:
        plain = _normalize(name)
        starting = [known for known in self._by_name if plain and known.startswith(plain)]
        near = starting or difflib.get_close_matches(plain, self._by_name, n=1)
        if not near:
            return " /help lists them."
        return f" Did you mean {' or '.join('/' + each for each in near)}?"

    def help(self, word: str = "") -> str:
        """The commands by group. With a word: the command of that name, else those that mention
        it, else a hint."""
        plain = _normalize(word.removeprefix("/"))
        if plain in self._by_name:
            return _describe(self._by_name[plain])
        found = [each for each in self.commands if plain in _searchable(each)]
        if not found:
            return f"No command mentions “{word}”.{self._hint(plain)}"
        if plain and len(found) == 1:
            return _describe(found[0])
        lines = list[str]()
        for group, commands in groupby(found, key=lambda each: each.group):
            lines += ["", group, *(f"  {line}" for line in self.lines(tuple(commands)))]
        return "\n".join((*lines, "", self._note)).strip() if not plain else "\n".join(lines[1:])

    def lines(self, commands: Sequence[SlashCommand] = ()) -> tuple[str, ...]:
        """One line per command."""
        longest = max(len(command.usage) for command in self.commands)
        width = min(MAX_USAGE_WIDTH, longest + len("/"))
        return tuple(
            f"{f'/{each.usage}':{width}}  {each.help}{_others(each)}"
            for each in commands or self.commands
        )


def split_line(line: str) -> tuple[str, str]:
    """The name, normalized, and the argument of a line that begins with a slash."""
    name, _, argument = line.removeprefix("/").partition(" ")
    return _normalize(name), argument.strip()


def split_flags(argument: str, *flags: str) -> tuple[str, set[str]]:
    """The argument without these flags, and those that it contains."""
    words = argument.split()
    rest = " ".join(word for word in words if word not in flags)
    return rest, {flag for flag in flags if flag in words}


def suggest(names: Iterable[str], begun: str) -> list[Suggestion]:
    """The names that begin with this text. The values of a mapping describe its names."""
    descriptions = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
    return [
        Suggestion(text=name, description=about, replaces=len(begun))
        for name, about in descriptions.items()
        if name.startswith(begun)
    ]


def _describe(command: SlashCommand) -> str:
    return f"/{command.usage}\n{command.help}{_others(command)}"


def _searchable(command: SlashCommand) -> str:
    return " ".join((command.usage, *command.aliases, command.help, command.group)).lower()


def _normalize(name: str) -> str:
    return name.lower().replace("_", "-")


def _others(command: SlashCommand) -> str:
    return f" (also {', '.join('/' + alias for alias in command.aliases)})" * bool(command.aliases)
