"""Loads the lists of guarded paths, compiled from places.toml, and looks paths up in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

# Written by scripts/generate_policy.py.
COMPILED = Path(__file__).with_name("places.json")
Groups = dict[str, tuple[str, ...]]


class Lists(msgspec.Struct, forbid_unknown_fields=True):
    """See places.toml. Groups are paths by what they hold."""

    home_folders: Groups
    home_files: Groups
    anywhere: Groups
    names: Groups
    harmless_names: tuple[str, ...]
    env_examples: tuple[str, ...]
    system_secrets: tuple[str, ...]
    shell_files: tuple[str, ...]
    started_in_home: tuple[str, ...]
    started_anywhere: tuple[str, ...]
    agent_files: tuple[str, ...]
    started_by_system: tuple[str, ...]
    system_folders: tuple[str, ...]
    roots: frozenset[str]
    scratch: tuple[str, ...]
    sockets: tuple[str, ...]
    process_secrets: frozenset[str]
    kernel_secrets: frozenset[str]
    shared_homes: frozenset[str]
    windows_devices: frozenset[str]
    readable_state: tuple[str, ...]
    secret_state: tuple[str, ...]


@cache
def lists() -> Lists:
    return msgspec.json.decode(COMPILED.read_bytes(), type=Lists)


class PathTable:
    """Finds what paths hold. A `*` in a pattern is any part of one name."""

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        self._exact: dict[str, str] = {}
        self._globs: dict[str, str] = {}
        for words, patterns in groups.items():
            for pattern in patterns:
                (self._globs if "*" in pattern else self._exact).setdefault(pattern, words)
        self._longest = max((each.count("/") for each in self._exact), default=0) + 1
        self._compiled: dict[str, re.Pattern[str]] = {}

    def below(self, path: str) -> str:
        """What a path or a folder around it holds, or nothing."""
        found = self._exact.get(path)
        end = len(path)
        while found is None and (end := path.rfind("/", 0, end)) > 0:
            found = self._exact.get(path[:end])
        return found or self._glob(path, r"(?:%s)(?:/|$)")

    def anywhere(self, path: str) -> str:
        """The same, with the pattern beginning at any folder of the path."""
        parts = path.split("/")
        for start in range(len(parts)):
            for end in range(start + 1, min(start + self._longest, len(parts)) + 1):
                if found := self._exact.get("/".join(parts[start:end])):
                    return found
        return self._glob(path, r"(?:.*/)?(?:%s)(?:/|$)")

    def whole(self, name: str) -> str:
        return self._exact.get(name) or self._glob(name, r"(?:%s)$")

    def _glob(self, path: str, shape: str) -> str:
        if not self._globs:
            return ""
        if shape not in self._compiled:
            each = "|".join(f"({_expression(pattern)})" for pattern in self._globs)
            self._compiled[shape] = re.compile(shape.replace("(?:%s)", f"(?:{each})"))
        found = self._compiled[shape].match(path)
        return [*self._globs.values()][(found.lastindex or 1) - 1] if found else ""


def _expression(pattern: str) -> str:
    return "[^/]*".join(map(re.escape, pattern.split("*")))


@cache
def table(name: str) -> PathTable:
    """One of the lists as a table; a plain list is one group."""
    found = getattr(lists(), name)
    return PathTable(found if isinstance(found, dict) else {name: found})
