"""Requests as differences: what one shares with the request before it is not kept again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

BLOCK = 8192


class Delta(NamedTuple):
    """`body` stands between the first `head` and the last `tail` bytes of the request before."""

    head: int
    tail: int
    body: bytes


def delta(before: bytes, now: bytes) -> Delta:
    most = min(len(before), len(now))
    head = _shared(most, lambda at, size: before[at : at + size] == now[at : at + size])
    ends = len(before), len(now)
    tail = _shared(
        most - head,
        lambda at, size: (
            before[ends[0] - at - size : ends[0] - at] == now[ends[1] - at - size : ends[1] - at]
        ),
    )
    return Delta(head, tail, now[head : len(now) - tail])


def restored(before: bytes, head: int, tail: int, body: bytes) -> bytes:
    return before[:head] + body + (before[-tail:] if tail else b"")


def _shared(most: int, same: Callable[[int, int], bool]) -> int:
    """How many of `most` bytes agree, counted from one end; `same` compares a stretch. A request
    is long and most of it is old, so it is gone through in blocks, each looked at once."""
    at, size = 0, BLOCK
    while size and at < most:
        step = min(size, most - at)
        if same(at, step):
            at += step
        else:
            size = step // 2
    return at
