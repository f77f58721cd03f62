"""Spans of secrets in a text, their masks and labels, and fast search in the text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from hermes.codec.values import Value


class SearchText:
    """`data` has one byte for each character, whatever the character: places in it are places in
    the text. `low` is the same in small letters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("latin-1", "replace")
        self.low = self.data.lower()

    def places(self, word: bytes, *, exact: bool = False) -> Iterable[int]:
        """Where a word begins, in small letters unless `exact`. Several searches for words are
        much faster than one expression that knows them all."""
        data = self.data if exact else self.low
        at = data.find(word)
        # Most words are nowhere in a text.
        return _places(data, word, at) if at >= 0 else ()


def _places(data: bytes, word: bytes, at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = data.find(word, at + 1)


# `model`: what a model reads. `log`: what is kept for people: logs, traces, exports.
Channel = Literal["model", "log"]
WHOLE_BLOCKS = {"private_key": "[REDACTED PRIVATE KEY]"}
PLACEHOLDER = re.compile(r"\[(?:secret|phone|email|id):[a-z0-9_]+(?:#\d+)?\]|\[REDACTED[A-Z ]*\]")


class SecretSpan(Value):
    start: int
    end: int
    kind: str


class Redacted(Value):
    """`found` are the kinds, each once, in order."""

    text: str
    found: tuple[str, ...] = ()


def join_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """In order and without overlap. Where spans overlap, their union is masked as what the first
    is; of two that start together the longer one."""
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
    """Enough of a secret to recognise it, not enough to use it."""
    return "***" if len(secret) < 18 else f"{secret[:6]}...{secret[-4:]}"


class Labels:
    """What stands in place of secrets. The same secret has the same number for as long as this
    lives; only digests are kept."""

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
