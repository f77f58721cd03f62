"""Finds secrets by their format; the table is formats.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from hermes.codec.expressions import compile_constant
from hermes.codec.values import Value
from hermes.policy.redact.heuristics import is_dummy, looks_random
from hermes.policy.redact.spans import SearchText, SecretSpan

# One of these words must precede such a key.
_STEPS = (b"2fa", b"otp", b"authenticator", b"two-factor", b"two factor", b"mfa", b"setup key")
_KEY = re.compile(
    r"[^\n]{0,100}?(?:[:=]|\bis\b|\bkey\b|\bsecret\b|\bcode\b|\bseed\b|\n)[\s\"'`*(]{1,6}"
    r"(?P<secret>(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4}|(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}"
    r"|[A-Z2-7]{16,64})(?![\w-])"
)


def find_otp_keys(page: SearchText) -> Iterator[SecretSpan]:
    for word in _STEPS:
        for at in page.places(word):
            match = _KEY.match(page.text, at + len(word) - 1)
            if match and _is_key(match["secret"]):
                yield SecretSpan(
                    start=match.start("secret"), end=match.end("secret"), kind="otp_key"
                )


def _is_key(secret: str) -> bool:
    """Whether the groups contain digits, unlike words."""
    return any(letter.isdigit() for letter in secret) and any(map(str.isalpha, secret))


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
_PUBLIC = re.compile(r"(?:pk|pub|public|publishable)[_-]\Z")
_PREFIX = re.compile(r"[A-Za-z0-9]+[_.-]")
# A second secret in the same call or pair.
_NEIGHBOUR = re.compile(r"[\"']\s*[,:]\s*[\"'](?P<secret>[A-Za-z0-9_+/=-]{20,128})[\"']")
_BEGINNING = re.compile(r"[A-Za-z0-9_:.-]+")
_LINE = re.compile(r"(?P<mixed>[!~]?)(?P<kind>\w+) +(?:<(?P<part>[^>]+)> )?(?P<pattern>.+)")


class Format(Value):
    """`mixed` formats need a digit and a letter after their prefix. `part` must occur in a text for
    formats without a fixed prefix; `beginning` is the prefix of formats that contain characters
    which end a run."""

    kind: str
    pattern: str
    mixed: bool = False
    part: str = ""
    beginning: str = ""


@cache
def formats() -> tuple[Format, ...]:
    text = files("hermes.policy.redact").joinpath("formats.txt").read_text(encoding="utf-8")
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#") and (match := _LINE.fullmatch(line)):
            found.append(
                Format(
                    kind=match["kind"],
                    pattern=match["pattern"],
                    mixed=match["mixed"] == "!",
                    part=match["part"] or "",
                    beginning=_beginning(match["pattern"]) if match["mixed"] == "~" else "",
                )
            )
    return tuple(found)


def _beginning(pattern: str) -> str:
    found = _BEGINNING.match(pattern)
    return found[0] if found else ""


@cache
def _by_beginning() -> tuple[tuple[bytes, Format], ...]:
    return tuple((each.beginning.encode(), each) for each in formats() if each.beginning)


@cache
def _with_beginning() -> tuple[re.Pattern[str], tuple[Format, ...]]:
    """One expression for all. Without groups, alternatives are skipped by first letter."""
    known = tuple(each for each in formats() if not each.part and not each.beginning)
    return _compile_bounded("|".join(each.pattern for each in known)), known


@cache
def _others() -> tuple[Format, ...]:
    return tuple(each for each in formats() if each.part)


@cache
def _compile_bounded(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: most runs need few of the formats."""
    return compile_constant(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])")


def find_by_format(page: SearchText) -> Iterator[SecretSpan]:
    yield from _from_beginnings(page)
    expression, known = _with_beginning()
    for start, end in _runs(page.data):
        for match in expression.finditer(page.text, start, end):
            form = next(
                each
                for each in known
                if _compile_bounded(each.pattern).match(page.text, match.start())
            )
            public = _PUBLIC.search(page.text, max(0, match.start() - 8), match.start())
            mixed = not form.mixed or _is_mixed(match[0])
            if mixed and not public and not is_dummy(match[0]):
                yield SecretSpan(start=match.start(), end=match.end(), kind=form.kind)
                yield from _beside(page.text, match.end())
        if end - start >= _LONG:
            yield from _around(page.text, max(0, start - _NEAR), end + _NEAR)


def _beside(text: str, at: int) -> Iterator[SecretSpan]:
    match = _NEIGHBOUR.match(text, at)
    if match and not is_dummy(match["secret"]) and looks_random(match["secret"], strict=True):
        yield SecretSpan(start=match.start("secret"), end=match.end("secret"), kind="secret")


def _from_beginnings(page: SearchText) -> Iterator[SecretSpan]:
    for beginning, form in _by_beginning():
        for at in page.places(beginning, exact=True):
            match = _compile_bounded(form.pattern).match(page.text, at)
            if match and not is_dummy(match[0]):
                yield SecretSpan(start=match.start(), end=match.end(), kind=form.kind)


def _around(text: str, start: int, end: int) -> Iterator[SecretSpan]:
    """Formats that contain characters which end a run."""
    window = text[start:end]
    for form in _others():
        if form.part in window:
            for match in _compile_bounded(form.pattern).finditer(text, start, end):
                if not is_dummy(match[0]):
                    yield SecretSpan(start=match.start(), end=match.end(), kind=form.kind)


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Long runs of token characters; few words are as long."""
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
    """Whether letters and digits are mixed at random, unlike in names of branches or packages."""
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
