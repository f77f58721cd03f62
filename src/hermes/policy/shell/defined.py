"""What earlier commands have defined in a shell: functions and aliases by name, as they are needed
to follow the next script."""

from __future__ import annotations

import re
from functools import lru_cache

from hermes.core.ports import ShellSetup
from hermes.policy.patterns import regex
from hermes.policy.shell.parser import parse
from hermes.policy.shell.state import State
from hermes.policy.shell.tree import Command, Unclear

# As `declare -f` and `alias -p` write them.
_FUNCTION = regex(r"^(?:function )?(\S+) \(\) *\n(\{ *\n.*?^\}[^\n]*)$", re.MULTILINE | re.DOTALL)
_ALIAS = regex(r"^alias (?:-- )?([^=\n]+)='((?:[^']|'\\'')*)'$", re.MULTILINE)
# In the place of a command, it stands for anything.
_ANYTHING = '"$unclear"'
_MOST = 60


class Defined:
    """By name, everything that may be meant: text inside a function can look like another one."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, list[str]] = {}
        self.aliases: dict[str, list[str]] = {}
        for name, body in _FUNCTION.findall(text):
            self.functions.setdefault(name, []).append(body)
        for name, value in _ALIAS.findall(text):
            self.aliases.setdefault(name, []).append(value.replace("'\\''", "'"))


@lru_cache(maxsize=16)
def _read(text: str) -> Defined:
    return Defined(text)


def define(setup: ShellSetup, script: str, state: State) -> None:
    """Put what the script may use into the state. What the person's own start files define is
    trusted to do what its name says."""
    if not setup.definitions or setup.definitions == setup.own:
        return
    found, own = _read(setup.definitions), _read(setup.own)
    texts = [script]
    while texts:
        text = texts.pop()
        for name, values in found.aliases.items():
            if name in text and name not in state.aliases and own.aliases.get(name) != values:
                state.aliases[name] = values[0] if len(values) == 1 else _ANYTHING
                texts += values
        for name, bodies in found.functions.items():
            if name in text and name not in state.functions and own.functions.get(name) != bodies:
                state.functions[name] = _body(bodies)
                texts += bodies
        if len(state.functions) + len(state.aliases) > _MOST:
            raise Unclear("more functions than can be followed")


def _body(bodies: list[str]) -> Command:
    try:
        return parse("{\n" + "\n".join(bodies) + "\n}").commands[0]
    except Unclear:
        return parse(_ANYTHING).commands[0]
