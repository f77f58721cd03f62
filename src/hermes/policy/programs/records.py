"""Loads what is known about programs: one record each, compiled from the *.toml files here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
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
    """Conditions, which must all hold, and what follows then. `steps.select` explains how words of
    the call are selected.

    Conditions: the program is called by one of `names`; one of the `options` is given; none of
    `without`; a subcommand is among `verbs` (`a:b` is one below another); one of the words `any`
    stands somewhere; none of `none`; there are at `least` so many operands, or `below` so many; all
    words selected by `here` lie in the workspace, and there are some; one selected by `outside`
    does not; one selected by `unknown` has an unknown part; one selected by `outward` is named like
    a deployment; a `word`, an `operand`, or a word selected by `of` (then `fits`) matches an
    expression as a whole; all `operands` do; the `text` of all words holds an expression; the known
    `input` does, or has one of these `origin`s; an operand is a `disk`; the stage of the project is
    that of its `tests`; the call only `looks`; the words selected by `reading` are subcommands that
    only read.

    Findings: `ask`, `never`, `deny` and `work` are categories, with a `reason`; `{name}` and
    `{word}` stand for the program and the word that fits.

    Selected words are files: `reads`, `reads_all` (folders), `writes`, `deletes` (with everything
    in them), `removes` (alone), `touches`, `creates` (checked only if it exists), `fetched` (from
    elsewhere), but not what the expression `skip` matches; archives that it `unpacks` and the
    folders they go `into`; a program of the project, `uses` (with `builds`, the current folder is
    one, too); a script, `runs`, or the words of a command, `runs_words`; `code` of a language,
    files with such code, `scripts`, or `statements` for a database; code that may name `secrets` of
    the environment. The groups of the expression
    `found` are scripts in the words `among`; without one, the step does nothing. `output` tells
    what the program prints (see `outputs`). With `stop` or `output`, nothing else counts."""

    names: str = ""
    options: str = ""
    without: str = ""
    verbs: str = ""
    any: str = ""
    none: str = ""
    least: int = 0
    below: int = 0
    here: str = ""
    outside: str = ""
    unknown: str = ""
    outward: str = ""
    word: str = ""
    operand: str = ""
    operands: str = ""
    of: str = ""
    fits: str = ""
    text: str = ""
    input: str = ""
    origin: str = ""
    disk: bool = False
    tests: bool | None = None
    looks: bool | None = None
    reading: str = ""
    ask: str = ""
    never: str = ""
    deny: str = ""
    work: str | None = None
    reason: str = ""
    reads: str = ""
    reads_all: str = ""
    writes: str = ""
    deletes: str = ""
    removes: str = ""
    touches: str = ""
    creates: str = ""
    fetched: str = ""
    skip: str = ""
    builds: bool = False
    unpacks: str = ""
    into: str = ""
    uses: str = ""
    runs: str = ""
    runs_words: str = ""
    code: str = ""
    scripts: str = ""
    secrets: str = ""
    statements: str = ""
    found: str = ""
    among: str = ""
    output: str = ""
    stop: bool = False


class Program(Value, forbid_unknown_fields=True):
    """One record. `check` names the function that checks a call: `git.git` is `check_git` in
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
    """`names` leads to the place of a record, `flags` and `languages` to names."""

    names: dict[str, int]
    records: list[msgspec.Raw]
    flags: dict[str, frozenset[str]]
    languages: dict[str, str]


@cache
def _load() -> _Compiled:
    return msgspec.json.decode(COMPILED.read_bytes(), type=_Compiled)


_decoder = msgspec.json.Decoder(Program)


@lru_cache(2048)
def record_of(name: str) -> Program:
    """What is known about a program, even if no function checks it."""
    place = _load().names.get(name)
    return UNKNOWN_PROGRAM if place is None else _decoder.decode(_load().records[place])


def is_known(name: str) -> bool:
    """Whether a function checks the program. Of some programs only flags are known."""
    return bool(record_of(name).check)


def known_names() -> Iterator[str]:
    return (name for name in _load().names if ":" not in name[1:] and is_known(name))


@cache
def flagged(flag: str) -> frozenset[str]:
    """The names of all programs with this flag."""
    return _load().flags.get(flag, frozenset())


def language_of(name: str) -> str:
    """The language whose files a program runs without naming them; "any" for build tools."""
    return _load().languages.get(name, "")
