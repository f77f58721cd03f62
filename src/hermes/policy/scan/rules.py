"""Matches the rules for prose (rules.toml) and for scripts (code.toml)."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from hermes.codec.json import convert
from hermes.codec.values import Value
from hermes.policy.scan.disguises import find_hidden

Scope = Literal["all", "context", "strict"]
RANK: dict[Scope, int] = {"all": 0, "context": 1, "strict": 2}
# Rules that describe circumstances: every text about distributed systems matches them.
CIRCUMSTANCE = frozenset(("c2_register", "c2_heartbeat", "c2_pull_tasks", "persistence"))
# Up to n words between two parts of a rule.
_BETWEEN = r"(?:(?:\W{1,6}\w+){0,%d}?\W{1,6})"
_BENT = r"(?:(?:s|es|d|ed|ing)?(?!\w)|(?<=\W))"
_PLAIN = r"(?:(?!\w)|(?<=\W))"


class ScanRule(Value, forbid_unknown_fields=True):
    """A group of phrases; rules.toml explains the fields."""

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
    rule: tuple[ScanRule, ...]


@cache
def _file() -> _File:
    text = files("hermes.policy.scan").joinpath("rules.toml").read_text(encoding="utf-8")
    return convert(_File, tomllib.loads(text))


def rules() -> tuple[ScanRule, ...]:
    return _file().rule


@cache
def compile_rule(rule: ScanRule) -> re.Pattern[str]:
    """The expression for the text after a start word, which may be inflected."""
    tail = (
        expand_lists(rule.tail, _file().lists).replace("≈", _BETWEEN % 8).replace("…", _BETWEEN % 3)
    )
    return re.compile((_BENT if rule.bent else _PLAIN) + tail)


def expand_lists(expression: str, lists: Mapping[str, str]) -> str:
    """Joins the lines of an expression and inserts the lists that it names."""
    joined = "".join(line.strip("\n").lstrip() for line in expression.split("\n"))
    return re.sub(r"\{\{(\w+)\}\}", lambda name: expand_lists(lists[name[1]], lists), joined)


_WORD = re.compile(r"[a-z0-9']+")
# Characters after which no word begins.
_INSIDE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789'_")
_ENDINGS = ("", "s", "es", "d", "ed", "ing")


class RuleMatch(Value):
    """A match in the folded text."""

    id: str
    start: int
    end: int
    strong: bool


class _Starts(Value):
    """`words`: by first word, the complete start, its inner words and its rule. `others`: starts
    that do not begin with a word."""

    words: dict[str, list[tuple[str, tuple[str, ...], ScanRule]]]
    others: list[tuple[str, frozenset[str], ScanRule]]


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


def match_rules(
    plain: str, scope: Scope, kind: str, spans: Iterable[tuple[int, int]] | None = None
) -> Iterator[RuleMatch]:
    """All rule matches in the folded text, or in parts of it."""
    padded = "\n" + plain
    # One byte per character: searching bytes is much faster.
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


def _present(words: set[str], starts: _Starts) -> dict[str, dict[int, ScanRule]]:
    """The starts whose words all occur, with their rules."""
    present: dict[str, dict[int, ScanRule]] = {}
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


def _fits(rule: ScanRule, padded: str, at: int, length: int) -> Iterator[RuleMatch]:
    tail = compile_rule(rule).match(padded, at + length)
    if tail:
        start = at - 1 if padded[at] != "\n" else at
        yield RuleMatch(
            id=rule.id, start=max(start, 0), end=tail.end() - 1, strong=rule.weight == "strong"
        )


MOST_FILES = 50
MOST_BYTES = 1_000_000
LARGEST_FILE = 256 * 1024

Severity = Literal["critical", "high", "low"]
_TEXTS = (".md", ".txt", ".rst", ".adoc")


class CodePattern(Value, forbid_unknown_fields=True):
    id: str
    severity: Severity
    expression: str


class _CodeFile(Value, forbid_unknown_fields=True):
    lists: dict[str, str]
    pattern: tuple[CodePattern, ...]


@cache
def _code_file() -> _CodeFile:
    text = files("hermes.policy.scan").joinpath("code.toml").read_text(encoding="utf-8")
    return convert(_CodeFile, tomllib.loads(text))


@cache
def patterns() -> tuple[tuple[CodePattern, re.Pattern[str]], ...]:
    found = _code_file()
    return tuple(
        (pattern, re.compile(expand_lists(pattern.expression, found.lists)))
        for pattern in found.pattern
    )


@cache
def _installers() -> re.Pattern[str]:
    return re.compile(expand_lists(_code_file().lists["installers"], {}), re.IGNORECASE)


def is_known_installer(text: str) -> bool:
    """Whether the text downloads a well-known install script."""
    return _installers().search(text) is not None


class CodeFinding(Value):
    id: str
    file: str
    line: int
    severity: Severity
    text: str = ""
    start: int = 0
    end: int = 0


def scan_files(texts: Mapping[str, str]) -> Iterator[CodeFinding]:
    """Findings in the files of a skill."""
    if len(texts) > MOST_FILES or sum(map(len, texts.values())) > MOST_BYTES:
        yield CodeFinding(id="too_much", file="", line=0, severity="high")
    for name, text in texts.items():
        clean = posixpath.normpath(name.replace("\\", "/"))
        if clean.startswith(("/", "..", "~")) or re.match(r"[A-Za-z]:", clean) or "\0" in name:
            yield CodeFinding(id="traversal", file=name, line=0, severity="critical")
        if "\0" in text or len(text) > LARGEST_FILE:
            yield CodeFinding(id="unreadable_file", file=name, line=0, severity="high")
        yield from scan_code(text[:LARGEST_FILE], name)
        for at, kind, weight in find_hidden(text):
            line = text.count("\n", 0, at) + 1
            severity: Severity = "critical" if weight == "strong" else "high"
            yield CodeFinding(id=kind, file=name, line=line, severity=severity)


def scan_code(text: str, name: str) -> Iterator[CodeFinding]:
    """Findings in a script, or in the commands of a text."""
    for pattern, expression in patterns():
        for match in expression.finditer(text):
            if pattern.id == "fetched_code" and is_known_installer(match[0]):
                continue
            line = text.count("\n", 0, match.start()) + 1
            words = " ".join(match[0].split())[:120]
            yield CodeFinding(
                id=pattern.id,
                file=name,
                line=line,
                severity=pattern.severity,
                text=words,
                start=match.start(),
                end=match.end(),
            )
            break


def is_prose(name: str) -> bool:
    return name.lower().endswith(_TEXTS)
