"""Regular expressions that are compiled on first use, and the words and expressions of words.toml:
most processes need few of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, AnyStr, Literal, cast

import msgspec

METHODS = ("match", "search", "fullmatch", "sub", "finditer", "findall", "split", "pattern")
# Written by scripts/generate_policy.py.
COMPILED = Path(__file__).with_name("words.json")


class Category(msgspec.Struct):
    """A category of findings: its description, and what a subcommand of this category does."""

    about: str
    does: str = "asked"


# Metadata services and networks that are `never` used are always refused.
Reach = Literal["global", "private", "metadata", "never"]


class Network(msgspec.Struct):
    network: str
    reach: Reach
    words: str


class PythonCalls(msgspec.Struct):
    calls: str
    category: str
    reason: str


class Vocabulary(msgspec.Struct):
    """The content of words.toml, which explains the fields."""

    words: dict[str, tuple[str, ...]]
    patterns: dict[str, str]
    categories: dict[str, Category]
    networks: tuple[Network, ...]
    python_asked: tuple[PythonCalls, ...]
    code_files: dict[str, str]


@cache
def vocabulary() -> Vocabulary:
    return msgspec.json.decode(COMPILED.read_bytes(), type=Vocabulary)


def word_list(name: str) -> tuple[str, ...]:
    return vocabulary().words[name]


@cache
def word_set(name: str) -> frozenset[str]:
    return frozenset(word_list(name))


class _Lazy:
    __slots__ = ("_compile", *METHODS)

    def __init__(self, compile_: Callable[[], re.Pattern[Any]]) -> None:
        self._compile = compile_

    def __getattr__(self, name: str) -> Any:
        """Compile the pattern at its first use; the slots then hold its methods, so this runs
        once."""
        if name not in METHODS:
            raise AttributeError(name)
        compiled = self._compile()
        for each in METHODS:
            setattr(self, each, getattr(compiled, each))
        return getattr(self, name)


def regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    return cast("re.Pattern[AnyStr]", _Lazy(partial(re.compile, source, flags)))


def load_regex(name: str) -> re.Pattern[str]:
    """Compile an expression of words.toml."""
    return cast("re.Pattern[str]", _Lazy(lambda: re.compile(vocabulary().patterns[name])))
