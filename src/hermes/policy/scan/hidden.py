"""Finds characters that no reader sees: invisible ones, reversed order, tags, long padding."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.scan.normal import alphabet

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\U000e0100-\U000e01ef]"
)
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Joins that scripts and emoji need: after a letter of theirs, or between pictures.
_JOINERS = frozenset("\u200c\u200d")
_PADDING = re.compile(r"\S[^\S\n]{60,}[^\s|]|\n{60,}\S")
_ESCAPE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def hidden(text: str) -> Iterator[tuple[int, str, str]]:
    """Place, id and weight ("strong" or "weak") of what is hidden. A mark at the very beginning
    that says how a file is written is none."""
    start = 1 if text.startswith("\ufeff") else 0
    seen: set[str] = set()
    letters = alphabet(text)
    if _INVISIBLE.search(letters) or _SELECTOR.search(letters):
        for match in _INVISIBLE.finditer(text, start):
            name = f"invisible_unicode_U+{ord(match[0]):04X}"
            if name not in seen and not _belongs(text, match.start()):
                seen.add(name)
                yield match.start(), name, _weight(match[0], text)
        for match in _SELECTORS.finditer(text):
            yield match.start(), "variation_selectors", "strong"
            break
    long = " " * 200 in text or "\t" * 60 in text or "\n" * 60 in text
    if long and (found := _PADDING.search(text)):
        yield found.start(), "hidden_by_padding", "weak"
    if (letters or not text.isprintable()) and (found := _ESCAPE.search(text)):
        yield found.start(), f"control_character_U+{ord(found[0]):04X}", "weak"


def _belongs(text: str, at: int) -> bool:
    """Part of how a script or an emoji is written."""
    letter = text[at]
    before = text[at - 1] if at else ""
    after = text[at + 1] if at + 1 < len(text) else ""
    if letter == "\ufeff":
        # Files that were put together leave one at the beginning of a line.
        return before in ("", "\n")
    if letter in _JOINERS:
        return ord(before or "a") > 0x500 and (ord(after or "a") > 0x500 or not after.isalnum())
    if letter in "\u200e\u200f\u061c":
        # Marks of direction stand in every text that mixes Arabic or Hebrew with Latin.
        return any("\u0590" <= each <= "\u08ff" for each in text)
    return letter == "\u00ad" and before.isalpha() and after.isalpha() and text.count(letter) < 4


def _weight(letter: str, text: str) -> str:
    # Typesetting programs leave soft hyphens behind, and folding removes them.
    if letter == "\u00ad":
        return "weak"
    if letter in _BIDI and any("\u0590" <= each <= "\u08ff" for each in text):
        return "weak"
    return "strong"
