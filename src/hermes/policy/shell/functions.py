"""Functions of a shell: those that earlier commands defined, and fork bombs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from hermes.core.ports import ShellSetup
from hermes.policy.patterns import regex
from hermes.policy.shell.parser import parse
from hermes.policy.shell.state import State
from hermes.policy.shell.tree import (
    Block,
    Command,
    Function,
    Pipeline,
    Script,
    Simple,
    Text,
    Unclear,
    Word,
)

# As it is usually quoted, often without the blanks that a shell needs.
BOMB = regex(
    r"(?<![\w.:-])(?P<name>[\w.:-]{1,40})\s?\(\s?\)\s{0,4}\{\s{0,4}(?P=name)\s*\|\s*(?P=name)\s*&\s*;?\s*\}"
)


CONSTANT = frozenset(("true", ":", "yes", "false", "[ 1", "[ true", "test 1", "! false"))
_NONE: Mapping[str, Command] = {}


def is_fork_bomb(name: str, body: Command, functions: Mapping[str, Command] = _NONE) -> bool:
    """Whether a function calls itself in a pipe or in the background, maybe through others."""
    others = {other: each for other, each in functions.items() if other != name}
    calls = list(_calls(name, body, others, loose=False))
    return any(calls) and (len(calls) > 1 or calls[0])


def _calls(
    name: str, command: Command | Script, others: dict[str, Command], *, loose: bool
) -> list[bool]:
    """Return one entry for each call of the function: whether it runs beside its caller."""
    match command:
        case Simple(words=words):
            called = _literals(words[:1])
            if called and called[0] in others:
                # Each function is followed once.
                return _calls(name, others.pop(called[0]), others, loose=loose)
            return [loose] if called == [name] else []
        case Pipeline(commands=commands):
            return [found for each in commands for found in _calls(name, each, others, loose=True)]
        case Block(bodies=bodies):
            return [found for each in bodies for found in _calls(name, each, others, loose=loose)]
        case Function(body=inner):
            return _calls(name, inner, others, loose=loose)
        case Script(commands=commands):
            background = command.background
            return [
                found
                for index, each in enumerate(commands)
                for found in _calls(name, each, others, loose=loose or index in background)
            ]


WAITING = frozenset(
    ("wait", "sleep", "read", "break", "exit", "return", "inotifywait", "usleep", "timeout")
)


def spawns_endlessly(block: Block) -> bool:
    """Whether an endless loop starts a background process in every round."""
    *condition, body = block.bodies
    if not body.background:
        return False
    endless = _is_always_true(condition[0]) if condition else _has_no_condition(block.words)
    # A round may wait for something or end the loop.
    return endless and _names(body, loose=False).isdisjoint(WAITING)


def writes_endlessly(block: Block) -> bool:
    """Whether an endless loop appends to a file in every round and waits for nothing."""
    *condition, body = block.bodies
    endless = _is_always_true(condition[0]) if condition else _has_no_condition(block.words)
    return endless and _appends(body) and _names(body).isdisjoint(WAITING)


def _appends(script: Script) -> bool:
    return any(
        isinstance(each, Simple | Block)
        and any(redirect.operator in (">>", "&>>") for redirect in each.redirects)
        for each in script.commands
    )


def _is_always_true(condition: Script) -> bool:
    """Whether the condition of a loop is constant. The tree does not tell `until` from `while`."""
    if len(condition.commands) != 1:
        return False
    match condition.commands[0]:
        case Simple(words=words):
            return " ".join(_literals(words)).removesuffix(" ]") in CONSTANT
        case Block(kind="test", words=words):
            return bool(re.fullmatch(r"[1-9]\d*|true", " ".join(_literals(words)).strip()))
    return False


def _has_no_condition(words: Sequence[Word]) -> bool:
    """Whether the head of `for ((…;…;…))` has no condition or a constant one."""
    _, _, rest = "".join(_literals(words)).partition(";")
    return rest.partition(";")[0].strip() in ("", "1", "true") and ";" in rest


def _literals(words: Sequence[Word]) -> list[str]:
    """Return the words as texts; one with expansions is empty."""
    return ["".join(p.text if isinstance(p, Text) else "" for p in word) for word in words]


def _names(script: Script, *, loose: bool = True) -> set[str]:
    """Return the plain names of its commands; without `loose` only of those that it waits for."""
    found: set[str] = set()
    for index, command in enumerate(script.commands):
        if not loose and index in script.background:
            continue
        match command:
            case Simple(words=words):
                first = words[0] if words else ()
                found.add(first[0].text if len(first) == 1 and isinstance(first[0], Text) else "")
            case Pipeline(commands=commands):
                found |= _names(Script(commands=commands))
            case Block(bodies=bodies):
                found = found.union(*(_names(body, loose=loose) for body in bodies))
            case Function():
                pass
    return found


# As `declare -f` and `alias -p` write them.
_FUNCTION = regex(r"^(?:function )?(\S+) \(\) *\n(\{ *\n.*?^\}[^\n]*)$", re.MULTILINE | re.DOTALL)
_ALIAS = regex(r"^alias (?:-- )?([^=\n]+)='((?:[^']|'\\'')*)'$", re.MULTILINE)
# As a command, it may be anything.
_ANYTHING = '"$unclear"'
_MOST = 60


Definitions = dict[str, list[str]]


@lru_cache(maxsize=16)
def _read(text: str) -> tuple[Definitions, Definitions]:
    """Return functions and aliases by name. Text inside a function can look like another
    definition."""
    functions: Definitions = {}
    aliases: Definitions = {}
    for name, body in _FUNCTION.findall(text):
        functions.setdefault(name, []).append(body)
    for name, value in _ALIAS.findall(text):
        aliases.setdefault(name, []).append(value.replace("'\\''", "'"))
    return functions, aliases


def load_definitions(setup: ShellSetup, script: str, state: State) -> None:
    """Load the definitions that the script may use into the state. Those of the person's own start
    files are trusted."""
    if not setup.definitions or setup.definitions == setup.own:
        return
    functions, aliases = _read(setup.definitions)
    own_functions, own_aliases = _read(setup.own)
    texts = [script]
    while texts:
        text = texts.pop()
        for name, values in aliases.items():
            if name in text and name not in state.aliases and own_aliases.get(name) != values:
                state.aliases[name] = values[0] if len(values) == 1 else _ANYTHING
                texts += values
        for name, bodies in functions.items():
            if name in text and name not in state.functions and own_functions.get(name) != bodies:
                state.functions[name] = _body(bodies)
                texts += bodies
        if len(state.functions) + len(state.aliases) > _MOST:
            raise Unclear("too many functions to follow")


def _body(bodies: list[str]) -> Command:
    try:
        return parse("{\n" + "\n".join(bodies) + "\n}").commands[0]
    except Unclear:
        return parse(_ANYTHING).commands[0]
