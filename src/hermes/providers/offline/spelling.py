"""Finds known words that a misspelt word may stand for."""

from __future__ import annotations

from collections.abc import Iterable

MAX_NEAR = 3


def slips_allowed(word: str) -> int:
    """The number of typos a word of this length may have before it could be another word."""
    if len(word) < 4 or not word.isalpha():
        return 0
    return 1 if len(word) < 8 else 2


def near_words(word: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The closest candidates, best first. The first letter must match, unless swapped with the
    second; in words of four letters another letter makes another word."""
    allowed = slips_allowed(word)
    if not allowed:
        return ()
    found: list[tuple[int, str]] = []
    for candidate in candidates:
        if abs(len(candidate) - len(word)) > allowed or not _same_start(word, candidate):
            continue
        slips = distance(word, candidate, allowed)
        if slips <= allowed and not (
            len(word) == 4 == len(candidate) and _has_other_letters(word, candidate)
        ):
            found.append((slips, candidate))
    found.sort()
    return tuple(candidate for slips, candidate in found if slips == found[0][0])[:MAX_NEAR]


def distance(one: str, two: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours; stops above `limit`."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(two, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and one[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def _same_start(word: str, candidate: str) -> bool:
    return word[0] == candidate[0] or (len(candidate) > 1 and word[:2] == candidate[1::-1])


def _has_other_letters(word: str, candidate: str) -> bool:
    return sorted(word) != sorted(candidate)
