"""Sets of messages behave like sets of numbers, however they are stored."""

from __future__ import annotations

import random
from array import array
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index import docs as sets
from hermes.journal.index.docs import Docs

COUNT = 3_000
numbers = st.one_of(
    st.sets(st.integers(0, COUNT - 1), max_size=40),
    # Drawn one by one, so many numbers take longer to make up than to test.
    st.builds(
        lambda seed, size: set(random.Random(seed).sample(range(COUNT), size)),
        st.integers(0, 10**6),
        st.integers(128, 180),
    ),
    st.sets(st.integers(0, 9), max_size=10).map(
        lambda kept: {n for n in range(COUNT) if n % 10 in kept}
    ),
)


def stored(found: set[int], count: int = COUNT) -> bytes:
    return sets.encode(array("H", sorted(found)).tobytes(), count)


def docs(found: set[int]) -> Docs:
    return sets.decode(stored(found), COUNT)


@given(numbers)
def test_a_set_survives_being_stored(found: set[int]) -> None:
    kept = docs(found)
    assert set(sets.members(kept)) == found
    assert sets.size_of(kept) == len(found)
    assert list(sets.newest(kept)) == sorted(found, reverse=True)


@given(numbers, numbers)
def test_sets_combine_like_sets(left: set[int], right: set[int]) -> None:
    one, other = docs(left), docs(right)
    assert set(sets.members(sets.intersection(one, other))) == left & right
    assert set(sets.members(sets.difference(one, other))) == left - right
    assert set(sets.members(sets.union([one, other]))) == left | right
    assert (set(sets.members(one)), set(sets.members(other))) == (left, right)


@given(numbers, numbers)
def test_numbers_are_told_apart_by_any_kind_of_set(some: set[int], found: set[int]) -> None:
    for kept in (docs(found), found, sets.as_bitmap(stored(found), COUNT)):
        assert sets.among(some, kept) == some & found
        assert sets.not_among(some, kept) == some - found


@given(numbers, st.integers(0, 7))
def test_a_bitmap_takes_in_the_number_after_its_last(found: set[int], odd: int) -> None:
    count = COUNT + odd
    bitmap = sets.as_bitmap(stored(found, count), count)
    assert set(sets.members(sets.extend(bitmap, count))) == {*found, count}


@given(st.lists(numbers, max_size=5))
def test_the_union_of_any_number_of_sets(parts: list[set[int]]) -> None:
    assert set(sets.members(sets.union([docs(part) for part in parts]))) == set().union(*parts)


@given(numbers, numbers)
def test_numbers_are_taken_out_of_a_stored_set(found: set[int], doomed: set[int]) -> None:
    rest = sets.without(stored(found), doomed, COUNT) if found else b""
    assert rest == (stored(found - doomed) if found - doomed else b"")


def test_a_set_of_some_is_stored_in_fewer_bytes() -> None:
    count = 65_536
    found = set(range(77, count, 41)) - set(range(20_000, 40_000))
    kept = stored(found, count)
    assert len(kept) < 1.2 * len(found)
    assert sets.decode(kept, count) == found


@given(st.integers(128, 400), st.integers(1, 60_000), st.integers(1, 300))
def test_steps_of_any_length_are_kept(size: int, far: int, step: int) -> None:
    found = {n * step % 65_536 for n in range(size)} | {far}
    assert sets.decode(stored(found, 65_536), 65_536) == found


segments = st.lists(
    st.integers(1, 4_000).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.one_of(
                st.sets(st.integers(0, count - 1), min_size=1, max_size=3),
                st.just(set(range(count))),
                st.integers(1, 9).map(lambda step: set(range(0, count, step))),
            ),
        )
    ),
    min_size=1,
    max_size=6,
)


@given(segments)
def test_joined_parts_are_stored_as_if_they_had_been_one(parts: list[tuple[int, set[int]]]) -> None:
    starts = list(accumulate((count for count, _ in parts), initial=0))
    total = starts.pop()
    pairs = list(zip(starts, parts, strict=True))
    together = [(start, stored(found, count), count) for start, (count, found) in pairs]
    whole = {start + n for start, (_, found) in pairs for n in found}
    assert sets.join(together, total) == stored(whole, total)


def test_everything() -> None:
    assert list(sets.members(sets.everything(11))) == list(range(11))
