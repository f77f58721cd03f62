"""Decides whether a name denotes a secret and whether a value looks like one, by the lists and
expressions of searches.toml."""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import msgspec

from hermes.codec.values import Value
from hermes.policy.patterns import regex

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
_WORD = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class NameWeight(IntEnum):
    """What a name implies about its value."""

    NONE = 0  # nothing
    HINT = 1  # a random-looking value is secret
    TOKEN = 2  # any value that is not a plain word is secret
    PASSWORD = 3  # any value is secret


_LISTS = TABLES.lists
_ENDINGS = tuple(_LISTS["endings"])


@lru_cache(maxsize=4096)
def name_weight(name: str) -> NameWeight:
    """Return what the name of a field implies about its value."""
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or (words[-1] in _LISTS["about"] and words[-2:] != ["api", "hash"]):
        return NameWeight.NONE
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if before in _LISTS["others"]:
        return NameWeight.NONE
    if len(words) == 1 and last in ("pat", "pass", "sas", "sid"):
        return NameWeight.TOKEN if last == "pass" else NameWeight.HINT
    if before in ("key", "secret", "token") and last in _LISTS["material"]:
        return NameWeight.TOKEN
    if last in _LISTS["passwords"] or last.endswith(_ENDINGS):
        return NameWeight.PASSWORD
    if not _LISTS["tokens"].isdisjoint((last, before + last)):
        return NameWeight.TOKEN
    if last.endswith(("secret", "token", "apikey")):
        return NameWeight.TOKEN
    if last == "key":
        return NameWeight.TOKEN if before in _LISTS["keys"] else NameWeight.HINT
    hinted = last in _LISTS["hints"] or not _LISTS["services"].isdisjoint(words)
    return NameWeight.HINT if hinted else NameWeight.NONE


# A public key for browsers.
_PUBLISHED = regex(r"^pk_(?:live|test)_")
# One or two characters repeated after the prefix.
_EMPTY = regex(r"(?i)[-_]?([x0*.#-])\1*$")
_DUMMY, _LOOKUP, _CODE, _PATH, _TEMPLATE = (
    regex(TABLES.expressions[name]) for name in ("dummy", "lookup", "code", "path", "template")
)
_HASHED = regex(
    r"(?i)^(?:sha(?:1|224|256|384|512)|md5|blake2b?)[-:=~$]|^\$2[aby]\$|^\$argon2|^[{]ssha"
)
# Names of secrets, or of variables.
_CALLED = regex(
    r"^(?:[a-z]+\d{0,5}_){2,}(?:key|secret|token|password|file|path)$"
    r"|^\w+=\$\{?[A-Za-z_]\w*\}?$"
)
_NUMBER = regex(r"^[-+]?\d{1,7}(?:\.\d+)?(?:[a-z%]{0,3})?$|^0x[0-9a-fA-F]{1,8}L?$")
_MASKED = regex(r"^\*+$|\.\.\.|^\[(?:secret|redacted|phone|email|id)|^\**redacted|^•+$|^x+$", re.I)


# A value of a URL, and not a variable of Windows such as `%ADMIN_PASSWORD%`.
_ENCODED = regex(r"%[0-9A-Fa-f]{2}(?!.*%$)")


def is_dummy(value: str) -> bool:
    """Whether the value is a placeholder."""
    if _DUMMY.search(value) is not None:
        return True
    tail = _EMPTY.search(value)
    return tail is not None and len(tail[0]) >= 12


def is_not_secret(value: str) -> bool:
    """Whether the value cannot be a secret, whatever its name."""
    bare = value.strip().rstrip("):,;")
    if _ENCODED.match(bare):
        bare = unquote(bare)
    return bool(
        bare.lower().rstrip(".!?") in _LISTS["values"]
        or _MASKED.search(bare)
        or _LOOKUP.match(bare)
        or _HASHED.match(bare)
        or _PUBLISHED.match(bare)
        or (_PATH.match(bare) and not _is_key_with_slash(bare))
        or _TEMPLATE.search(bare)
        or _CALLED.match(bare)
        or is_dummy(bare)
    )


def _is_key_with_slash(value: str) -> bool:
    """Whether a value that could be a path is a key in base64 that begins with a slash."""
    return len(value) >= 36 and value.count("/") < 4 and is_jumbled(value.replace("/", ""))


def is_number(value: str) -> bool:
    return _NUMBER.match(value) is not None


def is_code(value: str) -> bool:
    """Whether the value is a code expression."""
    return len(value) < 200 and _CODE.match(value.rstrip(":,;")) is not None


def is_prose(value: str) -> bool:
    """Whether the value is a sentence about a secret."""
    if " " not in value.strip():
        return False
    words = re.findall(r"[A-Za-z']+", value.lower())
    label = _LABEL.fullmatch(value) is not None
    return any(word in _LISTS["prose"] or (label and word in _NOUNS) for word in words)


# Words of labels: "Copy password".
_NOUNS = frozenset(
    ("password", "passphrase", "pw", "psk", "token", "key", "secret", "credential", "credentials")
)
_LABEL = regex(r"[A-Za-z (),/.-]+")
_WORDS_ONLY = regex(r"[A-Za-z]+(?:[-_.][A-Za-z]+)*[!?]?")
_RANDOM_BITS = 2.8
_NAME_PART = regex(
    r"[A-Za-z]?[a-z]*|[A-Z]+|v?\d{1,4}|[A-Za-z][a-z]*\d[a-z]*"
    r"|[a-z]*(?:[A-Z][a-z]{2,})+\d{0,4}|[A-Z]\d[A-Z]|\d{6,14}"
)
_UUID = regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PARTS = regex(r"[A-Z]?[a-z]+|[A-Z]|\d+")
_VOWEL = regex(r"[aeiouyAEIOUY]")
# Shorter numbers are ids and times.
_LONG_NUMBER = 15
_ONE_NAME = regex(
    r"[A-Z]{0,3}[a-z]{2,}\d?(?:[A-Z]{1,3}[a-z]{2,}\d?|[A-Z][a-z]\d?)*[A-Z]{0,3}\d{0,2}"
)


def is_secret(value: str, name: str, found: NameWeight, *, quoted: bool, environment: bool) -> bool:
    """Whether a value is secret under this name. `environment` means that the value comes from
    `NAME=value`, where it cannot be code."""
    # The beginning of a long value is enough, and hostile texts have very long ones.
    bare = value[:256].strip()
    if len(bare) < (3 if environment else 4) or is_not_secret(bare) or bare.lower() == name.lower():
        return False
    if is_prose(bare) or (not environment and _is_name_of_secret(bare)):
        return False
    if not quoted and not environment and is_code(bare):
        return False
    if environment and found >= NameWeight.TOKEN:
        return not is_number(bare) or found is NameWeight.PASSWORD
    if found is NameWeight.PASSWORD:
        return quoted or _can_stand_bare(bare)
    if is_number(bare) or " " in bare:
        return False
    if bare.isdigit():
        return found is NameWeight.TOKEN and len(bare) >= _LONG_NUMBER
    return looks_random(bare, strict=found is NameWeight.HINT)


def _is_name_of_secret(value: str) -> bool:
    """Whether the value is the name of a secret: `masterPassword`, `"EMAIL_HOST_PASSWORD"`."""
    words = _WORD.findall(value) if _WORDS_ONLY.fullmatch(value) else ()
    return len(words) > 1 and words[-1].lower() in _NOUNS


def _can_stand_bare(value: str) -> bool:
    """Whether an unquoted value cannot be a variable name."""
    return not (value.isidentifier() and "_" in value and value.islower())


def looks_random(value: str, *, strict: bool) -> bool:
    """Whether the value mixes letters and digits in a way that names do not; `strict` needs a
    longer value."""
    if not value.isascii() or " " in value:
        return False
    core = value.strip("=.,;:!?\"'()")
    letters = any(letter.isalpha() for letter in core)
    digits = sum(letter.isdigit() for letter in core)
    if _looks_like_name(core) or not letters:
        return False
    mixed = core.lower() != core and core.upper() != core
    if strict and _UUID.search(core):
        return False
    if strict:
        enough = digits >= 3 or (digits and (mixed or len(core) >= 32))
        return len(core) >= 20 and bool(enough) and _bits(core) > _RANDOM_BITS
    if len(core) >= 6 and digits:
        return True
    return len(core) >= 16 and mixed and _bits(core) > _RANDOM_BITS


def is_chosen(value: str) -> bool:
    """Whether the value looks like a chosen password: digits with capitals or punctuation."""
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
        and not _looks_like_name(core)
    )


def is_jumbled(value: str) -> bool:
    """Whether the value mixes upper and lower case in a way that names do not: with parts without
    vowels, or very short parts."""
    if not value.isalnum() or value.lower() == value or value.upper() == value:
        return False
    parts = _PARTS.findall(value)
    dumb = sum(len(part) > 2 and not _VOWEL.search(part) for part in parts)
    return len(parts) > 3 and (len(value) / len(parts) < 2.6 or dumb > 1)


def _looks_like_name(value: str) -> bool:
    """Whether the value is words and small numbers: `my-tls-secret-2`, `UserToken`, `gpt-4`."""
    parts = [part for part in re.split(r"[-_./:]", value) if part]
    if len(parts) < 2:
        return len(value) < 64 and _ONE_NAME.fullmatch(value) is not None
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
