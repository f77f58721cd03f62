"""The beginnings of words: what different forms of a word have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

_ENDINGS = ("ing", "ed", "es", "s", "e")
_STEM, _FOREIGN_STEM = 7, 5
_SENTENCE_ENDS = ".!?;\n。！？।؟"


def stems(words: Sequence[str]) -> list[str]:
    """One for each word, `|` for the end of a sentence; of scripts that do not set words apart,
    every two letters come last."""
    found: list[str] = []
    joined = ""
    for word in words:
        if word[0] > "\u0e00" and word[0].isalpha():
            joined += word.replace(" ", "")
        elif stem := _stem(word):
            found.append(stem)
    found += [joined[at : at + 2] for at in range(len(joined) - 1)]
    return found


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    if not word[0].isalpha():
        return _sign(word)
    if not word.isascii():
        return word[:_FOREIGN_STEM]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)][:_STEM]
    return word[:_STEM]


def _sign(word: str) -> str:
    if word[0] == "/":
        return "/"
    if word[0] in _SENTENCE_ENDS:
        return "|"
    if "://" in word or word == "@":
        return "@"
    return word if word in (",", ":") else ""
