"""What a crowd wants to know is found once, and everybody else sees every change."""

from __future__ import annotations

from itertools import count

from hermes.app.moments import MOST_KEPT, Moments


def test_everything_is_found_anew_unless_a_moment_has_a_length() -> None:
    moments, numbers = Moments[int](), count()
    assert [moments.get("a", lambda: next(numbers)) for _ in range(3)] == [0, 1, 2]


def test_within_a_moment_each_thing_is_found_once() -> None:
    moments, numbers = Moments[int](), count()
    moments.seconds = 3_600
    found = [moments.get(key, lambda: next(numbers)) for key in ("a", "b", "a", "b")]
    assert found == [0, 1, 0, 1]


def test_only_so_much_is_kept() -> None:
    moments, numbers = Moments[int](), count()
    moments.seconds = 3_600
    for key in range(MOST_KEPT + 1):
        moments.get(key, lambda: next(numbers))
    assert moments.get(0, lambda: -1) == -1
