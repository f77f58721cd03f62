"""Splits text into terms: folds letters, cuts words, splits scripts without spaces into pairs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from operator import add

LONGEST = 32
"""The longest term; a longer run of letters and digits becomes several terms."""

# Scripts that are written without spaces between words.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_EMOJI = "\u2600-\u27bf\U0001f300-\U0001faff"
# Letters and digits, and the vowel signs of Indic scripts, which belong to a word.
_LETTER = f"(?:[^\\W_{_DENSE}]|[\u0900-\u0dff])"
_BLOCK = 1_024
_ASCII = re.compile("[\x00-\x7f]*")
_ASCII_WORD = re.compile(f"[a-z0-9]{{1,{LONGEST}}}")
_ASCII_REST = re.compile("[a-z0-9]*")


# Large character classes take milliseconds to compile, so they are compiled on first use.
@cache
def _piece() -> re.Pattern[str]:
    return re.compile(f"(?P<dense>[{_DENSE}]+)|(?P<emoji>[{_EMOJI}])|{_LETTER}{{1,{LONGEST}}}")


@cache
def _rest() -> re.Pattern[str]:
    return re.compile(f"{_LETTER}*")


@cache
def _dense() -> re.Pattern[str]:
    return re.compile(f"[{_DENSE}]")


@cache
def _marks() -> re.Pattern[str]:
    """Accents of Latin, Greek and Cyrillic, points of Hebrew and Arabic, and zero-width characters.
    Marks of other scripts (Japanese voiced sounds) make different letters."""
    return re.compile(
        "[\u00ad\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670"
        "\u200b-\u200f\u202a-\u202e\u2060\ufe0f\ufeff]+"
    )


_PLAIN = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d"})
_NOT_PLAIN = re.compile("[øđłıæœð]")


def fold(text: str) -> str:
    """The text without case, accents and compatibility forms; the length may change."""
    if text.isascii():
        return text.lower()
    bare = _marks().sub("", unicodedata.normalize("NFKD", text))
    low = bare.casefold()
    # `translate` takes longer than everything else, and few texts need it.
    return unicodedata.normalize("NFC", low.translate(_PLAIN) if _NOT_PLAIN.search(low) else low)


def terms(folded: str) -> set[str]:
    """The terms of a folded text. A run without spaces gives its pairs of neighbours and its last
    character alone, so that a single character is always the prefix of a term."""
    if folded.isascii():
        return set(_ASCII_WORD.findall(folded))
    found: set[str] = set()
    for piece in _piece().finditer(folded):
        if piece.lastgroup == "dense":
            found.update(pairs(piece[0]))
            found.add(piece[0][-1])
        else:
            found.add(piece[0])
    return found


def pieces(folded: str) -> list[tuple[str, int]]:
    """Words and runs in order, each with its start."""
    return [(piece[0], piece.start()) for piece in _piece().finditer(folded)]


def pairs(run: str) -> list[str]:
    return list(map(add, run, run[1:]))


def end_of_word(text: str, at: int) -> int:
    """The end of the word that reaches to this position."""
    rest = (_ASCII_REST if text.isascii() else _rest()).match(text, at)
    return rest.end() if rest else at


def is_dense(character: str) -> bool:
    return not character.isascii() and _dense().match(character) is not None


def continues_word(text: str, at: int) -> bool:
    """Whether the character there would continue a word beside it."""
    if not 0 <= at < len(text):
        return False
    character = text[at]
    return character.isalnum() and not is_dense(character)


def origins(text: str, places: Sequence[int]) -> list[int]:
    """For rising positions in the folded text, the positions in the text itself."""
    if text.isascii():
        return list(places)
    found: list[int] = []
    start = before = 0
    for end in _blocks(text):
        length = len(fold(text[start:end]))
        inside = [place - before for place in places[len(found) :] if place < before + length]
        if inside:
            exact = _exact_origins(text, start, end)
            found += [exact[place] for place in inside]
        start, before = end, before + length
    return found + [len(text)] * (len(places) - len(found))


def _blocks(text: str) -> Iterator[int]:
    """The ends of parts that fold independently."""
    end = _BLOCK
    while end < len(text):
        while end < len(text) and _joins(text[end]):
            end += 1
        yield end
        end += _BLOCK
    yield len(text)


def _exact_origins(text: str, start: int, end: int) -> list[int]:
    """For each character of the folded part, its position in the text."""
    found: list[int] = []
    while start < end:
        plain = _plain_end(text, start, end)
        found += range(start, plain)
        if (start := plain) == end:
            break
        after = start + 1
        while after < end and _joins(text[after]):
            after += 1
        found += [start] * len(fold(text[start:after]))
        start = after
    return found


def _plain_end(text: str, start: int, end: int) -> int:
    """The end of the part where each character folds into one. The last character before another
    script may combine with it."""
    run = _ASCII.match(text, start, end)
    stop = run.end() if run else start
    return stop if stop == end else max(start, stop - 1)


def _joins(character: str) -> bool:
    """Whether normalization may merge the character with the one before it, or drop it."""
    return (
        unicodedata.category(character)[0] == "M"
        or "\u1160" <= character <= "\u11ff"
        or _marks().match(character) is not None
    )
