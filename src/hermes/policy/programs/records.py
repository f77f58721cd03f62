"""Loads what is known about programs: one record each, compiled from the *.toml files here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from hermes.codec.values import Value

# Written by scripts/generate_policy.py.
COMPILED = Path(__file__).with_name("programs.json")


class Runs(Value, forbid_unknown_fields=True):
    """How a program runs another one in a version or environment of its choice. `verbs` start a
    command, `values` are their options with a value; `named` words before the command say what is
    chosen; with `marked` the command stands behind `--`. For some, an unknown name is a `script` of
    the project."""

    verbs: str
    values: str = ""
    named: int = 0
    marked: bool = False
    script: bool = False


class Step(Value, forbid_unknown_fields=True):
    """Conditions, which must all hold, and what is found then.

    Conditions: one of the `options` is given; none of `without`; a subcommand is among `verbs`
    (`a:b` is one below another); one of the words `any` stands somewhere; none of `none`; there are
    at `least` so many operands, or `below` so many; all operands lie `here` in the workspace; a
    `word` or an `operand` fits an expression as a whole; all `operands` do; the `text` of all
    words holds an expression.

    Findings: `ask`, `never` and `work` are categories, with a `reason`; `{name}` and `{word}` stand
    for the program and the word that fits. `reads`, `reads_all`, `writes` and `deletes` select
    files, `runs` scripts, `runs_words` a command (see `catalogue`). `stop`: nothing else counts."""

    options: str = ""
    without: str = ""
    verbs: str = ""
    any: str = ""
    none: str = ""
    least: int = 0
    below: int = 0
    here: bool = False
    word: str = ""
    operand: str = ""
    operands: str = ""
    text: str = ""
    ask: str = ""
    never: str = ""
    work: str | None = None
    reason: str = ""
    reads: str = ""
    reads_all: str = ""
    writes: str = ""
    deletes: str = ""
    runs: str = ""
    runs_words: str = ""
    stop: bool = False


class Program(Value, forbid_unknown_fields=True):
    """One record. `check` names the function that judges a call: `git.git` is `check_git` in
    `programs/git.py`. The other fields are read by these functions; README.md lists them."""

    check: str = ""
    category: str = ""
    reason: str = ""
    values: str = ""
    skip: int = 0
    code_options: str = ""
    module_options: str = ""
    file_options: str = ""
    reads: str = ""
    works: str = ""
    asks: dict[str, str] = {}
    otherwise: str = "unknown_program"
    bare: str = "read"
    looks: str = ""
    setup: str = ""
    runs: Runs | None = None
    runs_code: str = ""
    flags: frozenset[str] = frozenset()
    steps: tuple[Step, ...] = ()
    output: str = ""
    command: bool = False


UNKNOWN_PROGRAM = Program()


class _Compiled(msgspec.Struct):
    """`names` leads to the place of a record; `flags` and `languages` also hold programs that have
    no `check` and are unknown otherwise."""

    names: dict[str, int]
    records: list[msgspec.Raw]
    flags: dict[str, frozenset[str]]
    languages: dict[str, str]
    partly: dict[str, int]


@cache
def _compiled() -> _Compiled:
    return msgspec.json.decode(COMPILED.read_bytes(), type=_Compiled)


_decoder = msgspec.json.Decoder(Program)


@cache
def _record(place: int) -> Program:
    return _decoder.decode(_compiled().records[place])


def record_of(name: str) -> Program:
    """What is known about a program, even if no function judges it."""
    compiled = _compiled()
    place = compiled.names.get(name, compiled.partly.get(name))
    return UNKNOWN_PROGRAM if place is None else _record(place)


def is_known(name: str) -> bool:
    return name in _compiled().names


def known_names() -> Iterator[str]:
    return (name for name in _compiled().names if ":" not in name[1:])


@cache
def flagged(flag: str) -> frozenset[str]:
    """The names of all programs with this flag."""
    return _compiled().flags.get(flag, frozenset())


def language_of(name: str) -> str:
    """The language whose files a program runs without naming them; "any" for build tools."""
    return _compiled().languages.get(name, "")
