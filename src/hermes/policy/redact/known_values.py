"""Finds configured secrets, also encoded, reversed or split."""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from hermes.policy.patterns import regex
from hermes.policy.redact.spans import SearchText, SecretSpan

SHORTEST = 6
# Shorter values could match neighbouring words by chance; mixed ones less so.
SHORTEST_SPLIT = 12
SHORTEST_MIXED = 8
SHORTEST_CODED = 8
_GRAM = 6
_LETTERS_AND_DIGITS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_OTHERS = bytes(byte for byte in range(256) if byte not in _LETTERS_AND_DIGITS)
# A digit before a letter is rare in texts and frequent in secrets: a good search anchor.
_ANCHOR = regex(rb"[0-9](?=([A-Za-z].{%d}))" % (_GRAM - 2), re.S)
_FIRST = regex(rb"[0-9][A-Za-z]")
# Character codes in sequence are a long run of digits.
_DIGITS = bytes(48 if 48 <= byte < 58 else 120 for byte in range(256))
_WIDEST = 8
_FIRST_LETTERS = 4
KIND = "known"


def squeeze(data: bytes) -> bytes:
    """Return only letters and digits, so that separators of a split value do not matter."""
    return data.translate(None, _OTHERS)


class KnownValues:
    """Searches for all values at once. The repr shows none of them."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._literal: list[str] = []
        self._by_gram: dict[bytes, list[bytes]] = {}
        self._rare: list[bytes] = []
        self._codes: list[bytes] = []
        self.longest = 0
        self._short: list[str] = []
        self._first_letters: tuple[str, ...] = ()
        self._beginnings: frozenset[bytes] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Add values; known ones and very short ones are ignored."""
        fresh = {value for value in values if len(value.strip()) >= SHORTEST}
        fresh.difference_update(self._literal)
        if not fresh:
            return
        for value in fresh:
            self._add(value)
        self._literal = sorted({*self._literal, *fresh}, key=len, reverse=True)
        self._short = [value for value in self._literal if _is_short(value)]
        self._first_letters = tuple({value[:_FIRST_LETTERS].lower() for value in self._literal})
        self.longest = len(self._literal[0]) * 4
        self._beginnings = None

    def __repr__(self) -> str:
        return f"KnownValues({len(self._literal)})"

    def __bool__(self) -> bool:
        return bool(self._literal)

    def __len__(self) -> int:
        return len(self._literal)

    def find(self, page: SearchText) -> Iterator[SecretSpan]:
        for value in self._short:
            yield from _literally(value, page.text)
        thin = squeeze(page.data)
        hits = [needle for needle in self._rare if needle in thin]
        if not self._by_gram.keys().isdisjoint(grams := _ANCHOR.findall(thin)):
            for gram in set(grams):
                hits += [needle for needle in self._by_gram.get(gram, ()) if needle in thin]
        if b"0" * 16 in thin.translate(_DIGITS):
            hits += [needle for needle in self._codes if needle in thin]
        if hits:
            yield from self._locate(page.text, thin, hits)

    def may_begin_in(self, text: str) -> bool:
        """Whether the text contains the beginning of a value."""
        low = text.lower()
        return any(letters in low for letters in self._first_letters)

    def begins_at_end(self, data: bytes) -> int:
        """Return the length of the suffix that could be the beginning of a known value."""
        if self._beginnings is None:
            needles = {needle for group in self._by_gram.values() for needle in group}
            needles.update(self._rare)
            self._beginnings = frozenset(
                needle[:length] for needle in needles for length in range(4, len(needle))
            )
        thin = squeeze(data[-4 * max(self.longest, 1) :])
        for length in range(min(len(thin), self.longest), 3, -1):
            if thin[-length:] in self._beginnings:
                return length
        return 0

    def _add(self, value: str) -> None:
        plain = squeeze(value.encode("utf-8", "surrogatepass"))
        for form in _forms(value):
            needle = squeeze(form)
            if len(needle) >= SHORTEST_CODED and not (
                len(needle) <= len(plain) and _is_short(value)
            ):
                self._keep(needle)
        self._codes.append("".join(str(byte) for byte in value.encode()).encode())

    def _keep(self, needle: bytes) -> None:
        anchor = _FIRST.search(needle[: len(needle) - _GRAM + 2])
        if anchor is None:
            if needle not in self._rare:
                self._rare.append(needle)
            return
        gram = needle[anchor.start() + 1 : anchor.start() + _GRAM]
        known = self._by_gram.setdefault(gram, [])
        if needle not in known:
            known.append(needle)

    def _locate(self, text: str, thin: bytes, needles: list[bytes]) -> Iterator[SecretSpan]:
        places = [at for at, letter in enumerate(text) if letter.isascii() and letter.isalnum()]
        for needle in set(needles):
            start = thin.find(needle)
            while start >= 0:
                first, last = places[start], places[start + len(needle) - 1]
                if last - first < len(needle) * _WIDEST:
                    yield self._whole(text, first, last + 1)
                start = thin.find(needle, start + 1)

    def _whole(self, text: str, start: int, end: int) -> SecretSpan:
        """Extend a match by the punctuation at the ends of the value."""
        for value in self._literal:
            at = text.find(value, max(0, start - len(value)), end + len(value))
            if at >= 0 and at <= start and at + len(value) >= end:
                return SecretSpan(start=at, end=at + len(value), kind=KIND)
        while end < len(text) and text[end] == "=":
            end += 1
        return SecretSpan(start=start, end=end, kind=KIND)


def _is_short(value: str) -> bool:
    """Whether the value is so short that only its literal form is searched."""
    plain = squeeze(value.encode("utf-8", "surrogatepass"))
    mixed = not plain.isalpha() and not plain.isdigit()
    return len(plain) < (SHORTEST_MIXED if mixed else SHORTEST_SPLIT)


def _literally(value: str, text: str) -> Iterator[SecretSpan]:
    for form in {value, value[::-1], json.dumps(value)[1:-1], quote(value, safe="")}:
        start = text.find(form)
        while start >= 0:
            yield SecretSpan(start=start, end=start + len(form), kind=KIND)
            start = text.find(form, start + len(form))


def _forms(value: str) -> Iterator[bytes]:
    """Yield the value and its encodings."""
    raw = value.encode("utf-8", "surrogatepass")
    for data in (raw, raw[::-1], raw.upper(), raw.lower(), raw.swapcase()):
        yield data
    yield json.dumps(value).encode()
    yield quote(value, safe="").encode()
    yield quote_plus(value).encode()
    yield _in_html(value).encode()
    yield codecs.encode(value, "rot13").encode("utf-8", "surrogatepass")
    hexed = raw.hex()
    yield hexed.encode()
    yield hexed.upper().encode()
    yield "".join(f"x{byte:02x}" for byte in raw).encode()
    yield "".join(f"0x{byte:02x}" for byte in raw).encode()
    yield base64.b32encode(raw)
    yield base64.b85encode(raw)
    for data in (raw, raw[::-1]):
        yield from _in_base64(data)
    yield from _in_base64(base64.b64encode(raw))
    yield base64.b64encode(raw)[::-1]


def _in_html(value: str) -> str:
    for sign, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        value = value.replace(sign, f"&{name};")
    return value


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """Yield the base64 forms at the three possible offsets in a longer text."""
    for before, cut in ((0, 0), (1, 2), (2, 3)):
        whole = (before + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + raw)[cut:whole]
