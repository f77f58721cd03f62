"""Spans of secrets in a text, their masks and labels, and fast search in the text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import AnyStr, Literal

from hermes.codec.values import Value
from hermes.policy.patterns import regex

_ASCII = bytes(range(128))
_LETTERS = bytes(byte if 97 <= byte < 123 or byte > 127 else 32 for byte in range(256))
# In shorter texts a search is as fast as a look at the vocabulary.
_LONG = 4_000


class SearchText:
    """A text prepared for searches. `data` has one byte per character, so offsets are those of the
    text. `low` is the same in lower case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("latin-1", "replace")
        self.low = self.data.lower()
        self._long = len(self.data) > _LONG

    @cached_property
    def _vocabulary(self) -> bytes:
        """The different words of the text. Most searches are for words that it does not have."""
        return b" ".join(set(self.low.translate(_LETTERS).split()))

    def places(self, word: bytes, *, exact: bool = False) -> Iterable[int]:
        """Yield the offsets of a word, ignoring case unless `exact`. Several searches are faster
        than one expression for all words."""
        if self._long and _letters(word) not in self._vocabulary:
            return ()
        data = self.data if exact else self.low
        at = data.find(word)
        # Most words do not occur.
        return _places(data, word, at) if at >= 0 else ()

    def has(self, part: str) -> bool:
        """Whether the text contains this part, in this case of letters."""
        word = part.encode("latin-1")
        known = not self._long or _letters(word) in self._vocabulary
        return known and word in self.data

    def places_in_other_scripts(self, words: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Yield the offsets and lengths of words with letters that are not Latin, ignoring case."""
        # Most texts that are not ASCII only have dashes or symbols, and none of these scripts.
        beyond = self.text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
        letters = beyond.decode("utf-8", "surrogatepass").lower()
        present = [w for w in words if all(each in letters for each in w if not each.isascii())]
        low = self.text.lower() if present else ""
        for word in present if len(low) == len(self.text) else ():
            for at in _places(low, word, low.find(word)):
                yield at, len(word)


@cache
def _letters(word: bytes) -> bytes:
    """Return the longest run of letters in a word."""
    return max(word.lower().translate(_LETTERS).split(), key=len, default=b"")


def _places(data: AnyStr, word: AnyStr, at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


# `model`: text for models. `log`: text for people: logs, traces, exports.
Channel = Literal["model", "log"]
WHOLE_BLOCKS = {"private_key": "[REDACTED PRIVATE KEY]"}
PLACEHOLDER = regex(r"\[(?:secret|phone|email|id):[a-z0-9_]+(?:#\d+)?\]|\[REDACTED[A-Z ]*\]")


class SecretSpan(Value):
    start: int
    end: int
    kind: str


def span_of(match: re.Match[str], kind: str, group: str | int = "secret") -> SecretSpan:
    start, end = match.span(group)
    return SecretSpan(start=start, end=end, kind=kind)


class Redacted(Value):
    """A redacted text. `found` are the kinds of secrets, each once, in order."""

    text: str
    found: tuple[str, ...] = ()


def join_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Sort spans and merge overlapping ones; the union has the kind of the first, or of the longer
    of two that start together."""
    found: list[SecretSpan] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if found and span.start < found[-1].end:
            last = found[-1]
            if span.end > last.end:
                found[-1] = SecretSpan(start=last.start, end=span.end, kind=last.kind)
        else:
            found.append(span)
    return found


def mask_secret(secret: str) -> str:
    """Shorten a secret so that its owner recognises it but nobody can use it."""
    return "***" if len(secret) < 18 else f"{secret[:6]}...{secret[-4:]}"


class Labels:
    """Labels for secrets. A secret keeps its number during the lifetime of this object, which
    stores only digests."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[bytes, int]] = {}

    def label(self, secret: str, kind: str, channel: Channel) -> str:
        if kind == "phone":
            return f"{secret[:5]}{'*' * max(len(secret) - 9, 3)}{secret[-4:]}"
        if kind.startswith("pii_"):
            digest = hashlib.blake2b(secret.lower().encode(), digest_size=5).hexdigest()
            return f"[{kind.removeprefix('pii_')}:{digest}]"
        if channel == "log":
            return WHOLE_BLOCKS.get(kind) or mask_secret(secret)
        return f"[secret:{kind}#{self._number(secret, kind)}]"

    def _number(self, secret: str, kind: str) -> int:
        known = self._numbers.setdefault(kind, {})
        digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return known.setdefault(digest, len(known) + 1)
