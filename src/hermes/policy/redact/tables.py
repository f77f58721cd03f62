"""Loads the word lists, expressions and searches of searches.toml, compiled to JSON."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hermes.codec.values import Value

# Written by scripts/generate_policy.py.
COMPILED = Path(__file__).with_name("searches.json")


class Search(Value, forbid_unknown_fields=True):
    """One search for secrets; searches.toml explains the fields."""

    kind: str
    expressions: tuple[str, ...]
    words: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    begins: Literal["word", "after", "line", "argument", "before"] = "word"
    before: str = ""
    trim: str = ""
    checks: tuple[str, ...] = ("possible",)


class SearchTables(Value, forbid_unknown_fields=True):
    lists: dict[str, frozenset[str]]
    expressions: dict[str, str]
    search: tuple[Search, ...]


TABLES = msgspec.json.decode(COMPILED.read_bytes(), type=SearchTables)
# Compiled on first use: most processes need few of them.
compiled = cache(re.compile)
