"""Sets of messages within a segment, numbered from 0: encoding and operations."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import accumulate, chain, compress, count
from operator import or_, sub
from sys import byteorder

Docs = set[int] | bytes
"""A set of few numbers, or one bit for every message of the segment, lowest number first."""

NOTHING: Docs = set()

_ONE = ord("1")
_MANY = 3_000
_TRUTH = bytes.maketrans(b"01", b"\0\1")
_LONGEST_MEAN_STEP = 512
_LONG_STEP = 255
_ARRIVES = bytes([1] * _LONG_STEP + [0])
_BITS = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))


def bitmap_size(count: int) -> int:
    return (count + 7) // 8


def encode(packed: bytes | bytearray, count: int) -> bytes:
    """Encode rising two-byte numbers of a segment with `count` messages: as they are, as deltas, or
    as a bitmap. The length tells which encoding was used: a bitmap has a fixed length, and of the
    others only deltas have an odd length."""
    size = (count + 7) // 8
    if len(packed) >= size:
        return to_bitmap(array("H", packed), size)
    if len(packed) * _LONGEST_MEAN_STEP >= 2 * count:
        steps = _in_steps(array("H", packed), size)
        if len(steps) < len(packed):
            return steps
    return bytes(packed)


def decode(stored: bytes, count: int) -> Docs:
    return stored if len(stored) == bitmap_size(count) else set(_few_numbers(stored))


def _in_steps(numbers: array[int], size: int) -> bytes:
    """Encode deltas, one byte each; a long one has additional bytes of 255 before it. A final
    padding byte makes the length odd and different from that of a bitmap."""
    gaps = chain(numbers[:1], map(sub, numbers[1:], numbers))
    steps = b"".join([_STEPS[gap] if gap < len(_STEPS) else _step(gap) for gap in gaps])
    steps += b"\xff" * (1 - len(steps) % 2)
    return steps + b"\xff\xff" if len(steps) == size else steps


def _step(gap: int) -> bytes:
    return b"\xff" * (gap // _LONG_STEP) + bytes([gap % _LONG_STEP])


_STEPS = tuple(map(_step, range(2_048)))


def _few_numbers(stored: bytes) -> Iterable[int]:
    """Return the numbers of a set that is not a bitmap."""
    if len(stored) % 2:
        return compress(accumulate(stored), stored.translate(_ARRIVES))
    return array("H", stored)


def without(stored: bytes, removed: set[int], count: int) -> bytes:
    """Return the stored set without some numbers; empty when none is left."""
    is_bitmap = len(stored) == bitmap_size(count)
    numbers = list(_set_bits(stored) if is_bitmap else _few_numbers(stored))
    remaining = [number for number in numbers if number not in removed]
    if not remaining or len(remaining) == len(numbers):
        return stored if remaining else b""
    return encode(array("H", remaining).tobytes(), count)


def join(parts: list[tuple[int, bytes, int]], count: int) -> bytes:
    """Return the stored set of several segments together. Each part has the number of its segment's
    first message in the whole, its stored set and its segment's size."""
    if all(len(stored) != (own + 7) // 8 for _, stored, own in parts):
        return encode(b"".join([_shift(stored, start) for start, stored, _ in parts]), count)
    bits = 0
    for start, stored, own in parts:
        bits |= _integer(as_bitmap(stored, own)) << start
    bitmap = _combine(bits, bitmap_size(count))
    dense = 2 * bits.bit_count() >= len(bitmap)
    return bitmap if dense else encode(array("H", _set_bits(bitmap)).tobytes(), count)


def _shift(stored: bytes, start: int) -> bytes:
    """Return the two-byte numbers of a set that is not a bitmap, with `start` added to each. All
    are added at once, as one long integer: none exceeds its two bytes."""
    if len(stored) % 2:
        stored = array("H", _few_numbers(stored)).tobytes()
    if not start:
        return stored
    starts = int.from_bytes(start.to_bytes(2, byteorder) * (len(stored) // 2), byteorder)
    return (int.from_bytes(stored, byteorder) + starts).to_bytes(len(stored), byteorder)


def as_bitmap(stored: bytes, count: int) -> bytes:
    size = bitmap_size(count)
    return stored if len(stored) == size else to_bitmap(_few_numbers(stored), size)


def to_bitmap(numbers: Iterable[int], size: int) -> bytes:
    # Setting digits is cheaper than setting bits, and they convert to an integer at once.
    highest = 8 * size - 1
    digits = bytearray(b"0") * (8 * size)
    for number in numbers:
        digits[highest - number] = _ONE
    return int(digits or b"0", 2).to_bytes(size, "little")


def everything(count: int) -> bytes:
    return _combine((1 << count) - 1, bitmap_size(count))


def size_of(docs: Docs) -> int:
    return int.from_bytes(docs, "little").bit_count() if isinstance(docs, bytes) else len(docs)


def members(docs: Docs) -> Iterable[int]:
    return _set_bits(docs) if isinstance(docs, bytes) else docs


def newest(docs: Docs) -> Iterator[int]:
    """Yield the numbers in falling order, lazily."""
    if not isinstance(docs, bytes):
        yield from sorted(docs, reverse=True)
        return
    for index in range(len(docs) - 1, -1, -1):
        if byte := docs[index]:
            yield from (index * 8 + bit for bit in reversed(_BITS[byte]))


def intersection(left: Docs, right: Docs) -> Docs:
    if isinstance(left, bytes) and isinstance(right, bytes):
        return _combine(_integer(left) & _integer(right), max(len(left), len(right)))
    if isinstance(left, bytes):
        left, right = right, left
    assert isinstance(left, set)
    return among(left, right)


def difference(left: Docs, right: Docs) -> Docs:
    if isinstance(left, bytes):
        taken = right if isinstance(right, bytes) else to_bitmap(right, len(left))
        return _combine(_integer(left) & ~_integer(taken), len(left))
    return not_among(left, right)


def among(numbers: set[int], docs: Docs) -> set[int]:
    """Return the numbers that are in the set."""
    if isinstance(docs, bytes):
        return {n for n in numbers if docs[n >> 3] >> (n & 7) & 1}
    return numbers & docs


def not_among(numbers: set[int], docs: Docs) -> set[int]:
    """Return the numbers that are not in the set."""
    if isinstance(docs, bytes):
        return {n for n in numbers if not docs[n >> 3] >> (n & 7) & 1}
    return numbers - docs


def extend(bitmap: bytes, number: int) -> bytes:
    """Return the set with one more number, which may follow the last."""
    return _combine(_integer(bitmap) | 1 << number, bitmap_size(number + 1))


def union(parts: Iterable[Docs]) -> Docs:
    few: list[set[int]] = []
    many: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            many.append(part)
        else:
            few.append(part)
    numbers = few[0] if len(few) == 1 else set().union(*few)
    if not many:
        return numbers
    size = len(many[0])
    if len(numbers) > _MANY:
        many.append(to_bitmap(numbers, size))
        numbers = set()
    bits = reduce(or_, map(_integer, many))
    bitmap = bytearray(_combine(bits, size))
    for number in numbers:
        bitmap[number >> 3] |= 1 << (number & 7)
    return bytes(bitmap)


def _set_bits(bitmap: bytes) -> Iterator[int]:
    # Digits of the whole as one long number, lowest first: avoids a loop in Python.
    digits = bin(_integer(bitmap))[:1:-1].encode().translate(_TRUTH)
    return compress(count(), digits)


def _integer(bitmap: bytes) -> int:
    return int.from_bytes(bitmap, "little")


def _combine(bits: int, size: int) -> bytes:
    return bits.to_bytes(size, "little")
