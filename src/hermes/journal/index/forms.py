"""Inflected forms of a word (plural, tense, case), without a dictionary."""

from __future__ import annotations


def _longest_first(endings: str) -> dict[str, None]:
    """The endings and the empty one, which comes last."""
    return dict.fromkeys([*sorted(endings.split(), key=len, reverse=True), ""])


# Endings are only removed from and added to long stems, so that a wrong guess is rare; it costs
# rank, never a result.
_LATIN = _longest_first(
    "s es e ed d er ers ing ings ly y ies ied ier ion ions or ors al ment ments able ive"
    " n en em ern a o as os i eur ung ungen"
)
_CYRILLIC = _longest_first(
    "ы и а я у ю е о ь ов ев ам ям ом ем ой еи ах ях ами ями ыи ая ое ые ого ому ых"
)
_OTHER = _longest_first("s e es")
_SHORTEST_STEM = 4
_SHORTEST_WORD = 4


def stem(word: str) -> str:
    """The word without its longest ending; empty for a word that is too short to have forms."""
    if len(word) < _SHORTEST_WORD or not word.isalpha():
        return ""
    for ending in _endings(word):
        root = word[: -len(ending)]
        if not ending:
            break
        if not word.endswith(ending) or len(root) < _SHORTEST_STEM - (len(ending) > 2):
            continue
        if ending == "y" and root[-1] in "aeiou":
            continue
        doubled = len(root) > _SHORTEST_STEM and root[-1] == root[-2]
        return root[:-1] if doubled and ending in ("ed", "ing", "er", "ers") else root
    return word


def is_form(root: str, other: str) -> bool:
    """Whether the other word, which begins with the stem, is a form of that word."""
    ending = other[len(root) :]
    known = _endings(root)
    return ending in known or (ending[0] == root[-1] and ending[1:] in known)


def _endings(word: str) -> dict[str, None]:
    if "\u0400" <= word[0] <= "\u04ff":
        return _CYRILLIC
    return _LATIN if word.isascii() else _OTHER
