"""Stores requests as differences to the previous request."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

BLOCK = 8192


class BodyDelta(NamedTuple):
    """`body` lies between the first `head` and the last `tail` bytes of the previous request."""

    head: int
    tail: int
    body: bytes


def diff_body(before: bytes, now: bytes) -> BodyDelta:
    most = min(len(before), len(now))
    head = _common_length(most, lambda at, size: before[at : at + size] == now[at : at + size])
    ends = len(before), len(now)
    tail = _common_length(
        most - head,
        lambda at, size: (
            before[ends[0] - at - size : ends[0] - at] == now[ends[1] - at - size : ends[1] - at]
        ),
    )
    return BodyDelta(head, tail, now[head : len(now) - tail])


def restore_body(before: bytes, head: int, tail: int, body: bytes) -> bytes:
    return before[:head] + body + (before[-tail:] if tail else b"")


def _common_length(most: int, same: Callable[[int, int], bool]) -> int:
    """The number of equal bytes, at most `most`, counted from one end; `same` compares a range.
    Compares in blocks, because requests are long and mostly unchanged."""
    at, size = 0, BLOCK
    while size and at < most:
        step = min(size, most - at)
        if same(at, step):
            at += step
        else:
            size = step // 2
    return at
