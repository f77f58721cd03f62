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
    """How a program runs another one in a version or environment of its choice."""

    verbs: str  # the subcommands that start a command
    values: str = ""  # their options with a value
    named: int = 0  # how many words before the command say what is chosen
    marked: bool = False  # whether the command stands behind `--`
    script: bool = False  # whether an unknown name is a script of the project


class Step(Value, forbid_unknown_fields=True):
    """A part of a program's record: if all conditions hold, everything else follows. Fields marked
    `words` hold selectors, which `steps.select` explains. Lists are words separated by blanks."""

    # Conditions on the call. Verbs are subcommands; `a:b` is one below another.
    names: str = ""  # the program is called by one of these names
    options: str = ""  # one of these options is given
    without: str = ""  # none of these options is given
    verbs: str = ""  # the subcommand is one of these
    any: str = ""  # one of these words stands somewhere
    none: str = ""  # none of these words stands anywhere
    least: int = 0  # there are at least so many operands
    below: int = 0  # there are fewer operands
    here: str = ""  # words: there are some, and all lie in the workspace
    outside: str = ""  # words: one does not lie in the workspace
    unknown: str = ""  # words: one has an unknown part
    outward: str = ""  # words: one is named like a deployment
    word: str = ""  # an expression that matches one argument as a whole
    operand: str = ""  # an expression that matches one operand as a whole
    operands: str = ""  # an expression that matches every operand as a whole
    of: str = ""  # words, of which one matches `fits` as a whole
    fits: str = ""
    text: str = ""  # an expression in the text of all arguments
    input: str = ""  # an expression in the known input
    origin: str = ""  # the input has one of these origins
    disk: bool = False  # an operand is a disk
    tests: bool | None = None  # the stage of the project is that of its tests
    looks: bool | None = None  # the call only reads
    reading: str = ""  # words: subcommands that only read
    # Findings: categories. `{name}` and `{word}` in the reason are the program and the word that
    # fits.
    ask: str = ""
    never: str = ""
    deny: str = ""
    work: str | None = None
    reason: str = ""
    # Effects on files.
    reads: str = ""  # words: files
    reads_all: str = ""  # words: folders with everything in them
    writes: str = ""  # words: files
    deletes: str = ""  # words: files and folders with everything in them
    removes: str = ""  # words: files and empty folders
    touches: str = ""  # words: files whose change is harmless
    creates: str = ""  # words: files, checked only if they exist
    fetched: str = ""  # words: files that come from another machine
    skip: str = ""  # an expression for words that are no files
    unpacks: str = ""  # words: archives
    into: str = ""  # words: the folders into which it unpacks
    # What it runs.
    builds: bool = False  # the files of the current folder
    uses: str = ""  # words: programs of the project
    runs: str = ""  # words: scripts
    runs_words: str = ""  # words: a command
    code: str = ""  # words: code of a language
    scripts: str = ""  # words: files with such code
    secrets: str = ""  # words: code that may name secrets of the environment
    statements: str = ""  # words: statements for a database
    found: str = ""  # an expression whose groups are scripts; without a match nothing follows
    among: str = ""  # words in which `found` is searched; all by default
    # The end: with one of these, later steps and the check are skipped.
    output: str = ""  # what the program prints: see `steps.make_output`
    stop: bool = False


class Program(Value, forbid_unknown_fields=True):
    """The record of a program. README.md explains the fields."""

    # The function that checks a call: `git.git` is `check_git` in `programs/git.py`.
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
    """The content of programs.json."""

    names: dict[str, int]  # the index of a program's record in `records`, by name
    records: list[msgspec.Raw]
    flags: dict[str, frozenset[str]]  # the programs with a flag, by flag
    languages: dict[str, str]  # the language of a program, by name


@cache
def _load() -> _Compiled:
    return msgspec.json.decode(COMPILED.read_bytes(), type=_Compiled)


_decoder = msgspec.json.Decoder(Program)


@lru_cache(2048)
def record_of(name: str) -> Program:
    """Return what is known about a program, even if no function checks it."""
    index = _load().names.get(name)
    return UNKNOWN_PROGRAM if index is None else _decoder.decode(_load().records[index])


def is_known(name: str) -> bool:
    """Whether a function checks the program. Of some programs only flags are known."""
    return bool(record_of(name).check)


def known_names() -> Iterator[str]:
    return (name for name in _load().names if ":" not in name[1:] and is_known(name))


@cache
def flagged(flag: str) -> frozenset[str]:
    """Return the names of all programs with this flag."""
    return _load().flags.get(flag, frozenset())


def language_of(name: str) -> str:
    """Return the language whose files a program runs without naming them; "any" for build tools."""
    return _load().languages.get(name, "")
