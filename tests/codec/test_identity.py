"""Each object is worked on once while it is among the newest few, whatever is equal to it."""

from __future__ import annotations

from hermes.codec.values import FEW, IdentityCache


def test_the_same_object_is_worked_on_once_and_an_equal_one_again() -> None:
    done: list[list[int]] = []

    def work(key: list[int]) -> int:
        done.append(key)
        return sum(key)

    sums = IdentityCache(work)
    one, equal = [1, 2], [1, 2]
    assert [sums(one), sums(one), sums(equal)] == [3, 3, 3]
    assert len(done) == 2
    sums.clear()
    assert sums(one) == 3
    assert len(done) == 3


def test_few_are_kept_and_none_is_mistaken_for_another() -> None:
    """A new object may get the place of one that is gone, but not of one that is kept."""
    done: list[int] = []

    def work(key: list[int]) -> int:
        done.append(key[0])
        return sum(key)

    sums = IdentityCache(work)
    first = [-1, 1]
    assert sums(first) == 0
    for number in range(20 * FEW):
        assert sums([number, 1]) == number + 1
    assert sums(first) == 0
    assert done.count(-1) == 2
