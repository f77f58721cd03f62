"""Loads the scanner's rules, lexicon and vocabulary, compiled to JSON."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hermes.codec.values import Value

# Written by scripts/generate_scan.py.
COMPILED = Path(__file__).with_name("tables.json")
Scope = Literal["all", "context", "strict"]
Weight = Literal["strong", "weak"]
Severity = Literal["critical", "high", "low"]
RANK: dict[Scope, int] = {"all": 0, "context": 1, "strict": 2}
# The concept of words without a meaning of their own.
OTHER = "."


class ScanRule(Value, forbid_unknown_fields=True):
    """A group of phrases; rules.toml explains the fields. `tail` is a complete expression."""

    id: str
    scope: Scope
    weight: Weight
    starts: tuple[str, ...]
    tail: str
    bent: bool = True
    fits: str = ""


class CodePattern(Value, forbid_unknown_fields=True):
    id: str
    severity: Severity
    expression: str


class ConceptRule(Value, forbid_unknown_fields=True):
    """A group of concept patterns; concepts.toml explains the fields. Each shape is an expression
    and the concepts without which no row can match."""

    id: str
    scope: Scope
    weight: Weight
    shapes: tuple[tuple[str, str], ...]
    denied: bool = False
    fits: str = ""


class LexiconEntry(Value, forbid_unknown_fields=True):
    """The concept of a word, and the phrases that begin with it. A phrase is its concept and the
    words after the first one; a word that ends in `*` matches any ending."""

    idea: str = OTHER
    phrases: dict[str, tuple[tuple[str, ...], ...]] = {}  # by second word, longest first
    loose: tuple[tuple[str, ...], ...] = ()  # phrases whose second word may have any ending


class Lexicon(Value, forbid_unknown_fields=True):
    """The concepts of words and stems."""

    words: dict[str, LexiconEntry]
    stems: dict[str, LexiconEntry]
    joined: dict[str, str]  # concepts of words in scripts without spaces


class ScanTables(Value, forbid_unknown_fields=True):
    rules: tuple[ScanRule, ...]
    code: tuple[CodePattern, ...]
    concepts: tuple[ConceptRule, ...]
    lexicon: Lexicon
    lists: dict[str, tuple[str, ...]]
    expressions: dict[str, str]


TABLES = msgspec.json.decode(COMPILED.read_bytes(), type=ScanTables)
# Compiled on first use: most texts need few of them.
compiled = cache(re.compile)
