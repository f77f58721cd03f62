"""Loads lists of words that several checks use, compiled from words.toml."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

# Written by scripts/generate_policy.py.
COMPILED = Path(__file__).with_name("words.json")


@cache
def _lists() -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(COMPILED.read_bytes(), type=dict[str, tuple[str, ...]])


def word_list(name: str) -> tuple[str, ...]:
    return _lists()[name]


@cache
def word_set(name: str) -> frozenset[str]:
    return frozenset(_lists()[name])
