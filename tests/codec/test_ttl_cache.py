"""What a crowd wants to know is found once, and everybody else sees every change."""

from __future__ import annotations

from itertools import count

from hermes.codec.ttl_cache import MOST_KEPT, TtlCache


def test_everything_is_found_anew_unless_a_moment_has_a_length() -> None:
    cache, numbers = TtlCache[int](), count()
    assert [cache.get("a", lambda: next(numbers)) for _ in range(3)] == [0, 1, 2]


def test_within_a_moment_each_thing_is_found_once() -> None:
    cache, numbers = TtlCache[int](), count()
    cache.seconds = 3_600
    found = [cache.get(key, lambda: next(numbers)) for key in ("a", "b", "a", "b")]
    assert found == [0, 1, 0, 1]


def test_only_so_much_is_kept() -> None:
    cache, numbers = TtlCache[int](), count()
    cache.seconds = 3_600
    for key in range(MOST_KEPT + 1):
        cache.get(key, lambda: next(numbers))
    assert cache.get(0, lambda: -1) == -1
