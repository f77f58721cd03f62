"""Sets of characters as sorted ranges of code points, and how such a range looks in UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]
ByteRanges = tuple[tuple[int, int], ...]

# Any character of a line of text: no NUL, no line break, no halves of surrogate pairs.
ANY: Ranges = ((0x01, 0x09), (0x0B, 0xD7FF), (0xE000, 0x10FFFF))

DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Ranges = ((0x09, 0x09), (0x0B, 0x0D), (0x20, 0x20))

_FOLDED_AT_MOST = 2_000


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for one in sets for pair in one):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def common(first: Ranges, second: Ranges) -> Ranges:
    return union(
        (max(a, c), min(b, d)) for a, b in first for c, d in second if max(a, c) <= min(b, d)
    )


def all_but(ranges: Ranges) -> Ranges:
    rest: list[tuple[int, int]] = []
    for low, high in ANY:
        for start, end in ranges:
            if end < low or start > high:
                continue
            if start > low:
                rest.append((low, start - 1))
            low = end + 1
        if low <= high:
            rest.append((low, high))
    return tuple(rest)


def in_both_cases(ranges: Ranges) -> Ranges:
    """With the other case of each letter. Ranges of whole scripts have both already."""
    more = [_letter_cases(code) for code in _few(ranges)]
    return union(ranges, *more)


def _few(ranges: Ranges) -> Iterator[int]:
    for low, high in ranges:
        if high - low < _FOLDED_AT_MOST:
            yield from range(low, high + 1)
        else:
            yield from range(low, min(high, 0x7F) + 1)


def _letter_cases(code: int) -> list[tuple[int, int]]:
    letter = chr(code)
    return [(ord(c), ord(c)) for c in (letter.lower(), letter.upper()) if len(c) == 1]


def as_utf8(ranges: Ranges) -> list[ByteRanges]:
    """Sequences of byte ranges that together match the UTF-8 of exactly these characters."""
    found: list[ByteRanges] = []
    for low, high in ranges:
        for limit in (0x7F, 0x7FF, 0xFFFF, 0x10FFFF):
            if low <= limit:
                _split(low, min(high, limit), found)
                low = limit + 1
            if low > high:
                break
    return found


def _split(low: int, high: int, found: list[ByteRanges]) -> None:
    """Cut until all characters of a part differ only in whole groups of six trailing bits."""
    for bits in (6, 12, 18):
        block = (1 << bits) - 1
        if low & ~block == high & ~block:
            break
        if low & block:
            _split(low, low | block, found)
            _split((low | block) + 1, high, found)
            return
        if high & block != block:
            _split(low, (high & ~block) - 1, found)
            _split(high & ~block, high, found)
            return
    first, last = chr(low).encode(), chr(high).encode()
    found.append(tuple(zip(first, last, strict=True)))
