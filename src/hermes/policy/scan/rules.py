"""The rules of what an injection says; they are written down in `rules.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from hermes.codec.json import convert
from hermes.codec.values import Value

Scope = Literal["all", "context", "strict"]
RANK: dict[Scope, int] = {"all": 0, "context": 1, "strict": 2}
# Weak families that mean something only when two of the others stand beside them.
CIRCUMSTANCE = frozenset(("c2_register", "c2_heartbeat", "c2_pull_tasks", "persistence"))
# So many words, and what stands between words.
_BETWEEN = r"(?:(?:\W{1,6}\w+){0,%d}?\W{1,6})"
_BENT = r"(?:(?:s|es|d|ed|ing)?(?!\w)|(?<=\W))"
_PLAIN = r"(?:(?!\w)|(?<=\W))"


class Rule(Value, forbid_unknown_fields=True):
    """One family of sentences; the fields are explained in the file."""

    id: str
    scope: Scope
    weight: Literal["strong", "weak"]
    starts: str
    tail: str = ""
    bent: bool = True
    fits: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        parts = re.split(r"\s+\|\s+|\s*\n\s*", self.starts.strip())
        return tuple(part.replace("^", "\n") for part in parts)


class _File(Value, forbid_unknown_fields=True):
    lists: dict[str, str]
    rule: tuple[Rule, ...]


@cache
def _file() -> _File:
    text = files("hermes.policy.scan").joinpath("rules.toml").read_text(encoding="utf-8")
    return convert(_File, tomllib.loads(text))


def rules() -> tuple[Rule, ...]:
    return _file().rule


@cache
def compiled(rule: Rule) -> re.Pattern[str]:
    """The expression for what follows a start. A word may be bent, but a longer word is another
    one."""
    tail = expanded(rule.tail, _file().lists).replace("≈", _BETWEEN % 8).replace("…", _BETWEEN % 3)
    return re.compile((_BENT if rule.bent else _PLAIN) + tail)


def expanded(expression: str, lists: Mapping[str, str]) -> str:
    """The lines of an expression put together, with the lists that it names."""
    joined = "".join(line.strip("\n").lstrip() for line in expression.split("\n"))
    return re.sub(r"\{\{(\w+)\}\}", lambda name: expanded(lists[name[1]], lists), joined)
