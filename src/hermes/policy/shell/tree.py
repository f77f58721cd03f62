"""A shell script as a tree of values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hermes.codec.values import Value


class Text(Value):
    """Characters that stand for themselves. Unquoted ones may still be patterns or braces."""

    text: str
    quoted: bool = False


class Variable(Value):
    """`$name` or `${name…}`. `operator` and `argument` are what follows the name in braces;
    `index` is what stands between brackets; `prefix` is `!` or `#` before the name."""

    name: str
    operator: str = ""
    argument: Word = ()
    index: str = ""
    prefix: str = ""
    quoted: bool = False


class Substitution(Value):
    """`$(…)` or backticks: the output of a script."""

    script: Script
    quoted: bool = False


class ProcessSubstitution(Value):
    """`<(…)` or `>(…)`: a script in place of a file."""

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
    """`target` is the file, or the text itself for `<<<`; `here` is the text for `<<`."""

    operator: str
    target: Word = ()
    descriptor: str = ""
    here: HereDocument | None = None


class Assignment(Value):
    """`items` are the elements of an array, else None."""

    name: str
    value: Word = ()
    items: tuple[Word, ...] | None = None
    append: bool = False


class Simple(Value):
    assignments: tuple[Assignment, ...] = ()
    words: tuple[Word, ...] = ()
    redirects: tuple[Redirect, ...] = ()


class Pipeline(Value):
    commands: tuple[Command, ...]


class Block(Value):
    """A compound command. `words` are expanded by it (the list of a `for`, what a `case` or a
    test looks at), `variable` is what a loop sets, `bodies` are the scripts it may run."""

    kind: Literal["group", "subshell", "if", "loop", "for", "case", "test"]
    bodies: tuple[Script, ...] = ()
    words: tuple[Word, ...] = ()
    variable: str = ""
    redirects: tuple[Redirect, ...] = ()


class Function(Value):
    name: str
    body: Command


Command: TypeAlias = Simple | Pipeline | Block | Function


class Script(Value):
    """Commands in order. `ends` are the operators behind them, "" behind the last."""

    commands: tuple[Command, ...] = ()
    ends: tuple[str, ...] = ()

    @property
    def background(self) -> tuple[int, ...]:
        """The places of the commands that end with `&`."""
        return tuple(place for place, end in enumerate(self.ends) if end == "&")


class Unclear(Exception):
    """The text cannot be parsed with certainty."""
