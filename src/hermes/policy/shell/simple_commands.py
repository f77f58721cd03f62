"""Lists the simple commands of a script in the order of its text, for advice about them.

Nothing is expanded, and text that cannot be parsed is read line by line: what may run is decided by
following the script (see `walk`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.codec.values import Value
from hermes.policy.shell.parser import parse
from hermes.policy.shell.tree import (
    Arithmetic,
    Block,
    Command,
    Function,
    Pipeline,
    ProcessSubstitution,
    Redirect,
    Script,
    Simple,
    Substitution,
    Text,
    Unclear,
    Variable,
    Word,
)


class SimpleCommand(Value):
    """A simple command of a script."""

    words: tuple[str, ...]  # without their quotes
    end: str = ""  # the operator that ends the command; "" at the end
    written: tuple[str, ...] = ()  # the targets of its redirections
    # It stands in a loop, a `case` or a function, so it may run any number of times.
    nested: bool = False


# Programs that run another one, with those of their options that take a value.
_WRAPPERS = {
    "builtin": "",
    "command": "",
    "doas": "uC",
    "env": "uCS",
    "exec": "a",
    "ionice": "cnp",
    "nice": "n",
    "stdbuf": "ioe",
    "sudo": "ugpChrtTUDR",
    "time": "fo",
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=.*", re.DOTALL)
_NESTED = ("loop", "for", "case")


def simple_commands(script: str) -> list[SimpleCommand]:
    try:
        return list(_list(parse(script), "", False))
    except (Unclear, RecursionError):
        return [found for line in script.split("\n") for found in _line(line)]


def executed(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program that really runs, without assignments and wrapper programs."""
    rest = list(words)
    while rest:
        name = rest[0].rpartition("/")[2]
        if _ASSIGNMENT.fullmatch(rest[0]):
            rest.pop(0)
        elif name in _WRAPPERS:
            rest = rest[1 + len(options(tuple(rest), _WRAPPERS[name])) :]
        else:
            return (name, *rest[1:])
    return ()


def sudo_options(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the options of a `sudo` among the wrappers of a command; None when there is none."""
    for at, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name == "sudo":
            return options(words[at:], _WRAPPERS["sudo"])
        if not (name in _WRAPPERS or word.startswith("-") or _ASSIGNMENT.fullmatch(word)):
            return None
    return None


def options(words: tuple[str, ...], with_value: str) -> tuple[str, ...]:
    """Return the words after the first that are options, or values of options."""
    found: list[str] = []
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-":
        found.append(rest.pop(0))
        if found[-1] == "--":
            break
        takes = not found[-1].startswith("--") and found[-1][-1] in with_value
        if takes and rest:
            found.append(rest.pop(0))
    return tuple(found)


def _line(line: str) -> list[SimpleCommand]:
    try:
        return list(_list(parse(line), "", False))
    except (Unclear, RecursionError):
        pieces = re.split(r"(&&|\|\||[;&|])", line)
        return [
            SimpleCommand(words=words, end="".join(pieces[at + 1 : at + 2]), nested=True)
            for at, piece in enumerate(pieces)
            if at % 2 == 0 and (words := tuple(piece.split()))
        ]


def _list(script: Script, last: str, nested: bool) -> Iterator[SimpleCommand]:
    for command, end in zip(script.commands, script.ends, strict=True):
        yield from _commands(command, end or last, nested)


def _commands(command: Command, end: str, nested: bool) -> Iterator[SimpleCommand]:
    match command:
        case Simple(assignments=assignments, words=words, redirects=redirects):
            values = tuple(f"{each.name}={_text(each.value)}" for each in assignments)
            found = (*values, *map(_text, words))
            written = tuple(_targets(redirects))
            if found or written:
                yield SimpleCommand(words=found, end=end, written=written, nested=nested)
        case Pipeline(commands=commands):
            for each in commands[:-1]:
                yield from _commands(each, "|", nested)
            yield from _commands(commands[-1], end, nested)
        case Block(kind=kind, bodies=bodies, redirects=redirects):
            for body in bodies:
                yield from _list(body, end, nested or kind in _NESTED)
            if written := tuple(_targets(redirects)):
                yield SimpleCommand(words=(), end=end, written=written, nested=nested)
        case Function(body=body):
            yield from _commands(body, end, True)


def _targets(redirects: tuple[Redirect, ...]) -> Iterator[str]:
    for each in redirects:
        if each.operator not in ("<", "<<", "<<<", "<&"):
            yield _text(each.target)


def _text(word: Word) -> str:
    """Return the word as far as its text tells; expansions are shown as such."""
    return "".join(map(_part, word))


def _part(part: object) -> str:
    match part:
        case Text(text=text):
            return text
        case Variable(name=name):
            return f"${{{name}}}"
        case Substitution():
            return "$(…)"
        case ProcessSubstitution(direction=direction):
            return f"{direction}(…)"
        case Arithmetic():
            return "$((…))"
    return ""
