"""Numbers in few letters."""

from __future__ import annotations

import pytest

from hermes.commands.formatting import format_count, format_duration, format_elapsed, format_money


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (41_230, "41.2K"),
        (999_960, "1M"),
        (1_250_000, "1.2M"),
    ],
)
def test_counts_are_short(count: int, words: str) -> None:
    assert format_count(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0s"), (59.9, "59s"), (60, "1m 00s"), (754, "12m 34s"), (3_780, "1h 03m")],
)
def test_running_times_are_whole_seconds(seconds: float, words: str) -> None:
    assert format_elapsed(seconds) == words


def test_a_short_duration_has_a_decimal() -> None:
    assert [format_duration(s) for s in (0.04, 1.25, 12.3)] == ["0.0s", "1.2s", "12s"]


def test_small_sums_are_not_nothing() -> None:
    assert [format_money(sum_) for sum_ in (0.0, 0.06, 0.0004)] == ["$0.00", "$0.06", "$0.0004"]
