"""Finds the places of a text where a rule can begin, in one pass over its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from hermes.codec.values import Value
from hermes.policy.scan.rules import RANK, Rule, Scope, compiled, rules

_WORD = re.compile(r"[a-z0-9']+")
# A word does not begin after one of these.
_INSIDE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789'_")
_ENDINGS = ("", "s", "es", "d", "ed", "ing")


class Sign(Value):
    """A rule that fits at a place of the folded text."""

    id: str
    start: int
    end: int
    strong: bool


class _Starts(Value):
    """`words`: by the first word, the whole start, the words inside of it and its rule. `others`:
    starts that do not begin with a word."""

    words: dict[str, list[tuple[str, tuple[str, ...], Rule]]]
    others: list[tuple[str, frozenset[str], Rule]]


@cache
def _starts(scope: Scope, kind: str) -> _Starts:
    found = _Starts(words={}, others=[])
    for rule in rules():
        if RANK[rule.scope] > RANK[scope] or (rule.fits and kind != rule.fits):
            continue
        for start in rule.words:
            first = _WORD.match(start)
            if first is None:
                found.others.append((start, frozenset(_WORD.findall(start)[:-1]), rule))
            elif first[0] == start:
                for ending in _ENDINGS if rule.bent else ("",):
                    found.words.setdefault(start + ending, []).append((start, (), rule))
            else:
                inner = tuple(_WORD.findall(start)[1:-1])
                found.words.setdefault(first[0], []).append((start, inner, rule))
    return found


def signs(
    plain: str, scope: Scope, kind: str, spans: Iterable[tuple[int, int]] | None = None
) -> Iterator[Sign]:
    """Everything that a rule fits to, in the folded text or within some parts of it."""
    padded = "\n" + plain
    # One byte for each letter, whatever the letter: a start is found there much faster.
    data = padded.encode("latin-1", "replace")
    starts = _starts(scope, kind)
    for first, last in spans if spans is not None else ((0, len(plain)),):
        words = set(_WORD.findall(plain, first, last))
        for start, fitting in _present(words, starts).items():
            for at in _places(data, padded, start, first + 1, last + 1):
                if padded[at - 1] not in _INSIDE and padded[at - 2 : at] != "--":
                    for rule in fitting.values():
                        yield from _fits(rule, padded, at, len(start))
        for start, inner, rule in starts.others:
            if words.issuperset(inner):
                for at in _places(data, padded, start, first, last + 1):
                    yield from _fits(rule, padded, at, len(start))


def _present(words: set[str], starts: _Starts) -> dict[str, dict[int, Rule]]:
    """The starts whose words are all there, and their rules."""
    present: dict[str, dict[int, Rule]] = {}
    for word in words & starts.words.keys():
        for start, inner, rule in starts.words[word]:
            if not inner or words.issuperset(inner):
                present.setdefault(start, {})[id(rule)] = rule
    return present


def _places(data: bytes, padded: str, start: str, first: int, last: int) -> Iterator[int]:
    wanted = start.encode("latin-1", "replace")
    at = data.find(wanted, first, last)
    while at >= 0:
        if padded.startswith(start, at):
            yield at
        at = data.find(wanted, at + 1, last)


def _fits(rule: Rule, padded: str, at: int, length: int) -> Iterator[Sign]:
    tail = compiled(rule).match(padded, at + length)
    if tail:
        start = at - 1 if padded[at] != "\n" else at
        yield Sign(
            id=rule.id, start=max(start, 0), end=tail.end() - 1, strong=rule.weight == "strong"
        )
