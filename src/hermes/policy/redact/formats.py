"""Finds secrets by their format; the table is formats.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hermes.policy.patterns import regex
from hermes.policy.redact.heuristics import is_dummy, looks_random
from hermes.policy.redact.spans import SearchText, SecretSpan, span_of

# Characters of tokens, and the minimum run that is examined.
_TOKEN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_RUNS = bytes(97 if byte in _TOKEN else 32 for byte in range(256))
SHORTEST = 18
_RUN = b"a" * SHORTEST
_LONG, _NEAR = 26, 64
_DIGITS = b"0123456789"
# A run without digits is a word unless it is very long.
_LONGEST_WORD = 24
# Public keys.
_PUBLIC = regex(r"(?:pk|pub|public|publishable)[_-]\Z")
_PREFIX = regex(r"[A-Za-z0-9]+[_.-]")
# A second secret in the same call or pair.
_NEIGHBOUR = regex(r"[\"']\s*[,:]\s*[\"'](?P<secret>[A-Za-z0-9_+/=-]{20,128})[\"']")
# The fixed prefix of a pattern, and the letters that it may begin with.
_BEGINNING = regex(r"[A-Za-z0-9_:.-]+")
_LETTERS = regex(r"\[(?P<set>\w+)\]|\(\?:(?P<words>[^)]+)\)|(?P<letter>\w)")
_TOKEN_START = regex(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_LINE = regex(r"(?P<mark>[!~]?)(?P<kind>\w+) +(?:<(?P<part>[^>]+)> )?(?P<pattern>.+)")


class Format(NamedTuple):
    """One format of secrets."""

    kind: str
    expression: re.Pattern[str]
    mixed: bool  # whether a digit and a letter must follow the prefix


class FormatTable:
    """All formats of secrets, by how they are searched."""

    def __init__(self, text: str) -> None:
        # Formats with characters that end a run, by their prefix.
        self.by_prefix: list[tuple[bytes, Format]] = []
        # Formats without a fixed prefix, by what a text must contain.
        self.by_part: list[tuple[str, Format]] = []
        self.kinds: list[str] = []
        groups: dict[str, list[tuple[str, Format]]] = {}
        for match in filter(None, map(_LINE.fullmatch, text.splitlines())):
            pattern = match["pattern"]
            form = Format(match["kind"], _bound(pattern), match["mark"] == "!")
            self.kinds.append(form.kind)
            if match["part"]:
                self.by_part.append((match["part"], form))
            elif match["mark"] == "~" and (prefix := _BEGINNING.match(pattern)):
                self.by_prefix.append((prefix[0].encode(), form))
            else:
                for letter in _first_letters(pattern):
                    groups.setdefault(letter, []).append((pattern, form))
        self.by_letter = {
            letter: (_bound("|".join(pattern for pattern, _ in group)), [f for _, f in group])
            for letter, group in groups.items()
        }


def _bound(pattern: str) -> re.Pattern[str]:
    return regex(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])")


def _first_letters(pattern: str) -> set[str]:
    found = _LETTERS.match(pattern)
    assert found, pattern
    return set(found["set"] or found["letter"] or (word[0] for word in found["words"].split("|")))


@cache
def formats() -> FormatTable:
    file = Path(__file__).with_name("formats.txt")
    return FormatTable(file.read_text(encoding="utf-8"))


def find_by_format(page: SearchText) -> Iterator[SecretSpan]:
    text, table = page.text, formats()
    for prefix, form in table.by_prefix:
        for at in page.places(prefix, exact=True):
            if (match := form.expression.match(text, at)) and not is_dummy(match[0]):
                yield SecretSpan(start=at, end=match.end(), kind=form.kind)
    for start, end in _runs(page.data):
        for form, match in _by_letter(table, text, start, end):
            public = _PUBLIC.search(text, max(0, match.start() - 8), match.start())
            mixed = not form.mixed or _is_mixed(match[0])
            if mixed and not public and not is_dummy(match[0]):
                yield span_of(match, form.kind, 0)
                yield from _beside(text, match.end())
        if end - start >= _LONG:
            yield from _by_part(table, text, max(0, start - _NEAR), end + _NEAR)


def _by_letter(
    table: FormatTable, text: str, start: int, end: int
) -> Iterator[tuple[Format, re.Match[str]]]:
    done = start
    for first in _TOKEN_START.finditer(text, start, end):
        group = table.by_letter.get(first[0])
        if group is None or first.start() < done:
            continue
        expression, forms = group
        if match := expression.match(text, first.start(), end):
            done = match.end()
            yield next(f for f in forms if f.expression.match(text, match.start())), match


def _beside(text: str, at: int) -> Iterator[SecretSpan]:
    match = _NEIGHBOUR.match(text, at)
    if match and not is_dummy(match["secret"]) and looks_random(match["secret"], strict=True):
        yield span_of(match, "secret")


def _by_part(table: FormatTable, text: str, start: int, end: int) -> Iterator[SecretSpan]:
    """Find formats that contain characters which end a run."""
    window = text[start:end]
    for part, form in table.by_part:
        if part in window:
            for match in form.expression.finditer(text, start, end):
                if not is_dummy(match[0]):
                    yield span_of(match, form.kind, 0)


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield long runs of token characters; few words are as long."""
    marks = data.translate(_RUNS)
    start = marks.find(_RUN)
    while start >= 0:
        end = marks.find(b" ", start + SHORTEST)
        if end < 0:
            end = len(marks)
        run = data[start:end]
        digits = len(run) - len(run.translate(None, _DIGITS))
        named = run.islower() or not (b"_" in run or b"-" in run)
        if digits or len(run) > _LONGEST_WORD or run.isupper() or not named:
            yield start, end
        start = marks.find(_RUN, end)


def _is_mixed(secret: str) -> bool:
    """Whether letters and digits are mixed at random. In names of branches or packages they are
    not."""
    prefix = _PREFIX.match(secret)
    body = secret[prefix.end() :] if prefix else secret
    digits = sum(letter.isdigit() for letter in body)
    cased = body != body.lower() and body != body.upper()
    if not digits or not any(letter.isalpha() for letter in body):
        return False
    return (digits > 1 or (cased and len(body) >= 24)) and not _is_words(body)


def _is_words(body: str) -> bool:
    parts = re.split(r"[_-]", body)
    plain = [part for part in parts if (part.isalpha() and part.islower()) or part.isdigit()]
    return len(parts) > 1 and len(plain) == len(parts) and max(map(len, parts)) < 16
