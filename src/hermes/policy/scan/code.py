"""Looks through the files of a skill for what no skill needs: hidden code, theft, footholds."""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from hermes.codec.json import convert
from hermes.codec.values import Value
from hermes.policy.scan.hidden import hidden
from hermes.policy.scan.rules import expanded

MOST_FILES = 50
MOST_BYTES = 1_000_000
LARGEST_FILE = 256 * 1024

Severity = Literal["critical", "high", "low"]
_TEXTS = (".md", ".txt", ".rst", ".adoc")


class Pattern(Value, forbid_unknown_fields=True):
    id: str
    severity: Severity
    expression: str


class _File(Value, forbid_unknown_fields=True):
    lists: dict[str, str]
    pattern: tuple[Pattern, ...]


@cache
def _file() -> _File:
    text = files("hermes.policy.scan").joinpath("code.toml").read_text(encoding="utf-8")
    return convert(_File, tomllib.loads(text))


@cache
def patterns() -> tuple[tuple[Pattern, re.Pattern[str]], ...]:
    found = _file()
    return tuple(
        (pattern, re.compile(expanded(pattern.expression, found.lists)))
        for pattern in found.pattern
    )


@cache
def _installers() -> re.Pattern[str]:
    return re.compile(expanded(_file().lists["installers"], {}), re.IGNORECASE)


def is_known_installer(text: str) -> bool:
    """The text fetches from a place whose install script is run that way by everybody."""
    return _installers().search(text) is not None


class CodeFinding(Value):
    id: str
    file: str
    line: int
    severity: Severity
    text: str = ""
    start: int = 0
    end: int = 0


def in_files(texts: Mapping[str, str]) -> Iterator[CodeFinding]:
    """What was found in the files of a skill, by name."""
    if len(texts) > MOST_FILES or sum(map(len, texts.values())) > MOST_BYTES:
        yield CodeFinding(id="too_much", file="", line=0, severity="high")
    for name, text in texts.items():
        clean = posixpath.normpath(name.replace("\\", "/"))
        if clean.startswith(("/", "..", "~")) or re.match(r"[A-Za-z]:", clean) or "\0" in name:
            yield CodeFinding(id="traversal", file=name, line=0, severity="critical")
        if "\0" in text or len(text) > LARGEST_FILE:
            yield CodeFinding(id="unreadable_file", file=name, line=0, severity="high")
        yield from in_code(text[:LARGEST_FILE], name)
        for at, kind, weight in hidden(text):
            line = text.count("\n", 0, at) + 1
            severity: Severity = "critical" if weight == "strong" else "high"
            yield CodeFinding(id=kind, file=name, line=line, severity=severity)


def in_code(text: str, name: str) -> Iterator[CodeFinding]:
    """For a script, or for the commands that a text shows."""
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
