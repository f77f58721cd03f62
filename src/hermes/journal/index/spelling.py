"""Finds words that differ from an unknown word by one typing error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

SHORTEST, SHORTEST_NAME = 5, 4
"""The minimal length of a word or name that may be misspelled; shorter ones have too many
neighbours."""


def alike(word: str, blocks: Iterable[bytes], *, most: int) -> list[str]:
    """The words that differ by an extra, missing or wrong letter or by two swapped letters; those
    with the same prefix first. A block is words between newlines."""
    found = {other for block in blocks for other in _one_slip_away(word, block)}
    found.discard(word)
    order = sorted(found, key=lambda other: (other[0] != word[0], len(other) != len(word), other))
    return order[:most]


def is_one_slip(word: str, other: str) -> bool:
    """Whether one typing error turns one word into the other."""
    shorter = min(len(word), len(other))
    if max(len(word), len(other)) - shorter > 1:
        return False
    first = 0
    while first < shorter and word[first] == other[first]:
        first += 1
    last = 0
    while last < shorter - first and word[-1 - last] == other[-1 - last]:
        last += 1
    left, right = word[first : len(word) - last], other[first : len(other) - last]
    return max(len(left), len(right)) < 2 or (len(left) == 2 and left == right[::-1])


def _one_slip_away(word: str, block: bytes) -> Iterator[str]:
    """A typing error leaves one half of a word intact, unless two letters are swapped in its
    middle."""
    middle = len(word) // 2
    begins, ends = b"\n" + word[:middle].encode(), word[middle:].encode() + b"\n"
    swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    if b"\n" + swapped.encode() + b"\n" in _with_beginning(block, swapped.encode()[:1]):
        yield swapped
    for part, where in ((begins, _with_beginning(block, begins[1:])), (ends, block)):
        at = where.find(part)
        while at >= 0:
            start = where.rfind(b"\n", 0, at + 1) + 1
            end = where.find(b"\n", start)
            if len(word) - 1 <= end - start <= 4 * (len(word) + 1):
                other = where[start:end].decode("utf-8", "replace")
                if is_one_slip(word, other):
                    yield other
            at = where.find(part, end)


def _with_beginning(block: bytes, start: bytes) -> bytes:
    """The block, if words with this prefix can be in it, otherwise nothing. A block is sorted."""
    first, last = block[1 : 1 + len(start)], block[block.rfind(b"\n", 0, -1) + 1 : -1]
    return block if first <= start <= last[: len(start)] else b""
