"""Times that a question names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.journal.index.filters import named_in

NOW = datetime(2024, 6, 12, 15, 0, tzinfo=UTC).timestamp()


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("query", "inside", "outside"),
    [
        ("What happened on 7 May 2023?", "2023-05-07", "2023-05-06"),
        ("What happened on May 7th, 2023?", "2023-05-08", "2023-05-20"),
        ("the 3rd of July 2022", "2022-07-03", "2022-07-20"),
        ("Where was she in August 2023?", "2023-08-30", "2023-09-20"),
        ("in the summer of 2023", "2023-07-15", "2023-10-01"),
        ("in winter 2023", "2024-01-15", "2023-10-01"),
        ("What did he do in 2021?", "2021-12-31", "2022-01-01"),
        ("2024-02-03", "2024-02-03", "2024-02-20"),
        ("since 2024-02", "2024-02-28", "2024-03-20"),
        ("what did Anna say last May", "2024-05-20", "2023-05-20"),
        ("last October", "2023-10-05", "2022-10-05"),
        ("in September", "2019-09-05", "2019-10-05"),
        ("yesterday", "2024-06-11T20:00", "2024-06-12T10:00"),
        ("last week", "2024-06-03", "2024-05-20"),
        ("two months ago", "2024-04-11", "2024-06-11"),
    ],
)
def test_a_time_is_understood(query: str, inside: str, outside: str) -> None:
    period = named_in(query, NOW)
    assert period is not None
    assert period.holds(at(inside))
    assert not period.holds(at(outside))


@pytest.mark.parametrize(
    "query",
    ["What may I do?", "did they march on?", "room 4711", "", "31 February 2023", "2023-99"],
)
def test_what_is_no_time_is_none(query: str) -> None:
    assert named_in(query, NOW) is None


@given(st.text(max_size=100), st.floats(0, 4e9))
def test_any_text_may_be_asked(text: str, now: float) -> None:
    period = named_in(text, now)
    assert period is None or period.since < period.until
