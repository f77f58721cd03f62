"""Tells whether a value that stands where a secret belongs is one."""

from __future__ import annotations

import math
import re
from collections import Counter

from hermes.policy.redact.lookalikes import is_code, is_no_secret, is_number, is_prose
from hermes.policy.redact.names import Weight

_RANDOM_BITS = 2.8
_NAME_PART = re.compile(
    r"[A-Za-z]?[a-z]*|[A-Z]+|v?\d{1,4}|[a-z]+\d|(?:[A-Z][a-z]{2,})+\d{0,4}|\d{6,14}"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]|\d+")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_ONE_NAME = re.compile(r"[A-Za-z][a-z]+(?:[A-Z][a-z]+)*\d{0,2}")


def is_secret(value: str, name: str, found: Weight, *, quoted: bool, environment: bool) -> bool:
    """`environment`: a value of `NAME=value`, where nothing but values can stand."""
    # The beginning of a long value tells enough, and hostile texts hold very long ones.
    bare = value[:256].strip()
    if len(bare) < (3 if environment else 4) or is_no_secret(bare) or bare.lower() == name.lower():
        return False
    if is_prose(bare) or (not quoted and not environment and is_code(bare)):
        return False
    if environment and found >= Weight.TOKEN:
        return not is_number(bare) or found is Weight.PASSWORD
    if found is Weight.PASSWORD:
        return quoted or _can_stand_bare(bare)
    if is_number(bare) or " " in bare:
        return False
    return looks_random(bare, strict=found is Weight.HINT)


def _can_stand_bare(value: str) -> bool:
    """Without quotes a plain word may be a variable of a program."""
    return not (value.isidentifier() and "_" in value and value.islower())


def looks_random(value: str, *, strict: bool) -> bool:
    """Letters and digits mixed as no name is. `strict`: long enough to be sure."""
    if not value.isascii() or " " in value:
        return False
    core = value.strip("=.,;:!?\"'()")
    letters = any(letter.isalpha() for letter in core)
    digits = sum(letter.isdigit() for letter in core)
    if _is_named(core) or not letters:
        return False
    mixed = core.lower() != core and core.upper() != core
    if strict and _UUID.search(core):
        return False
    if strict:
        enough = digits >= 3 or (digits and mixed)
        return len(core) >= 20 and bool(enough) and _bits(core) > _RANDOM_BITS
    if len(core) >= 6 and digits:
        return True
    return len(core) >= 16 and mixed and _bits(core) > _RANDOM_BITS


def is_chosen(value: str) -> bool:
    """No word of a sentence is spelt like this: digits inside, with large letters or signs."""
    core = value.strip(".,;:!?\"'()")
    inside = core.rstrip("0123456789")
    digits = any(letter.isdigit() for letter in inside)
    cased = core.lower() != core and core.upper() != core
    signs = any(not letter.isalnum() and letter not in "_-./'" for letter in core)
    letters = any(letter.isalpha() for letter in core)
    if len(core) >= 10 and core.isascii() and is_jumbled(core):
        return True
    many = sum(letter.isdigit() for letter in core) > 2
    return (
        len(core) >= 8
        and core.isascii()
        and letters
        and (digits and (cased or signs or (many and len(core) > 11)))
        and not _is_named(core)
    )


def is_jumbled(value: str) -> bool:
    """Large and small letters as no name mixes them: parts without a vowel, or very short ones."""
    if not value.isalnum() or value.lower() == value or value.upper() == value:
        return False
    parts = _PARTS.findall(value)
    dumb = sum(len(part) > 2 and not _VOWEL.search(part) for part in parts)
    return len(parts) > 3 and (len(value) / len(parts) < 2.6 or dumb > 1)


def _is_named(value: str) -> bool:
    """Made of words and small numbers: `my-tls-secret-2`, `UserToken`, `gpt-4`, `users:123`."""
    parts = [part for part in re.split(r"[-_./:]", value) if part]
    if len(parts) < 2:
        return len(value) < 24 and _ONE_NAME.fullmatch(value) is not None
    return all(_NAME_PART.fullmatch(part) for part in parts)


def _bits(value: str) -> float:
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def kind_of_name(name: str) -> str:
    low = name.lower()
    for word, kind in (
        ("pass", "password"),
        ("pwd", "password"),
        ("cookie", "cookie"),
        ("sess", "session"),
        ("auth", "authorization"),
        ("secret", "secret"),
        ("token", "token"),
        ("key", "api_key"),
    ):
        if word in low:
            return kind
    return "secret"
