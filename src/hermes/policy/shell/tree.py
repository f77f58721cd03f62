"""A shell script as a tree of values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hermes.codec.values import Value


class Text(Value):
    """Characters that stand for themselves. Unquoted ones may still be patterns or braces."""

    text: str
    quoted: bool = False


class Variable(Value):
    """The expansion of a variable: `$name` or `${name…}`."""

    name: str
    operator: str = ""  # what follows the name in braces, like `:-`
    argument: Word = ()
    index: str = ""  # what stands between brackets
    prefix: str = ""  # `!` or `#` before the name
    quoted: bool = False


class Substitution(Value):
    """The output of a script: `$(…)` or backticks."""

    script: Script
    quoted: bool = False


class ProcessSubstitution(Value):
    """A script in place of a file: `<(…)` or `>(…)`."""

    script: Script
    direction: Literal["<", ">"]


class Arithmetic(Value):
    """An arithmetic expansion. `parts` are the expansions inside."""

    parts: Word


Part: TypeAlias = Text | Variable | Substitution | ProcessSubstitution | Arithmetic
Word: TypeAlias = tuple[Part, ...]


class HereDocument:
    """A here-document, whose text follows the line that names it."""

    __slots__ = ("body", "delimiter", "quoted", "tabs")

    def __init__(self, delimiter: str, *, quoted: bool, tabs: bool) -> None:
        self.delimiter = delimiter
        self.quoted = quoted
        self.tabs = tabs
        self.body: Word = ()


class Redirect(Value):
    """A redirection of a command."""

    operator: str
    target: Word = ()  # the file, or the text itself for `<<<`
    descriptor: str = ""
    here: HereDocument | None = None  # the text for `<<`


class Assignment(Value):
    """An assignment to a variable."""

    name: str
    value: Word = ()
    items: tuple[Word, ...] | None = None  # the elements of an array
    append: bool = False


class Simple(Value):
    assignments: tuple[Assignment, ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Pipeline(Value):
    commands: tuple[Command, ...]


class Block(Value):
    """A compound command."""

    kind: Literal["group", "subshell", "if", "loop", "for", "case", "test"]
    bodies: tuple[Script, ...] = ()  # the scripts that it may run
    # What it expands: the list of a `for`, the subject of a `case` or a test.
    words: tuple[Word, ...] = ()
    variable: str = ""  # what a loop sets
    redirects: tuple[Redirect, ...] = ()


class Function(Value):
    name: str
    body: Command


Command: TypeAlias = Simple | Pipeline | Block | Function


class Script(Value):
    """Commands in order. `ends` are the operators that end them, "" for the last."""

    commands: tuple[Command, ...] = ()
    ends: tuple[str, ...] = ()

    @property
    def background(self) -> tuple[int, ...]:
        """The indexes of the commands that end with `&`."""
        return tuple(index for index, end in enumerate(self.ends) if end == "&")


class Unclear(Exception):
    """The text cannot be parsed with certainty."""
