"""What people write about when a job runs, and the moments that it means."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import UsageError
from hermes.cron.schedule import next_run, parse_expression, parse_schedule


@pytest.fixture(params=["Europe/Berlin"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def following(schedule: str, after: str) -> str:
    moment = next_run(parse_schedule(schedule, at(after)), at(after))
    assert moment is not None
    return datetime.fromtimestamp(moment).astimezone().isoformat()


@pytest.mark.parametrize(
    ("schedule", "after", "next_"),
    [
        ("30m", "2026-03-02T08:00+01:00", "2026-03-02T08:30:00+01:00"),
        ("in 2 hours", "2026-03-02T08:00+01:00", "2026-03-02T10:00:00+01:00"),
        ("every 30m", "2026-03-02T08:00+01:00", "2026-03-02T08:30:00+01:00"),
        ("daily at 9:00", "2026-03-02T08:00+01:00", "2026-03-02T09:00:00+01:00"),
        ("every 1d at 9pm", "2026-03-02T08:00+01:00", "2026-03-02T21:00:00+01:00"),
        ("weekdays at 09:00", "2026-03-06T09:00+01:00", "2026-03-09T09:00:00+01:00"),
        ("mon,thu at 18:30", "2026-03-02T18:30+01:00", "2026-03-05T18:30:00+01:00"),
        ("0 9 * * mon-fri", "2026-03-06T09:00+01:00", "2026-03-09T09:00:00+01:00"),
        ("*/20 8-9 * jan *", "2026-03-02T08:00+01:00", "2027-01-01T08:00:00+01:00"),
        ("0 0 29 2 *", "2026-03-02T08:00+01:00", "2028-02-29T00:00:00+01:00"),
        ("0 0 31 * *", "2026-03-31T08:00+02:00", "2026-05-31T00:00:00+02:00"),
        ("0 0 13 * 5", "2026-03-02T08:00+01:00", "2026-03-06T00:00:00+01:00"),
        ("@monthly", "2026-03-02T08:00+01:00", "2026-04-01T00:00:00+02:00"),
        ("2026-03-03T14:00", "2026-03-02T08:00+01:00", "2026-03-03T14:00:00+01:00"),
        ("2026-03-03T14:00Z", "2026-03-02T08:00+01:00", "2026-03-03T15:00:00+01:00"),
        # The clocks go from 2 to 3 and from 3 back to 2.
        ("daily at 2:30", "2026-03-28T12:00+01:00", "2026-03-29T03:00:00+02:00"),
        ("daily at 2:30", "2026-10-24T12:00+02:00", "2026-10-25T02:30:00+02:00"),
        ("daily at 2:30", "2026-10-25T02:30+02:00", "2026-10-26T02:30:00+01:00"),
    ],
)
def test_schedules_mean_what_they_say(zone: str, schedule: str, after: str, next_: str) -> None:
    assert following(schedule, after) == next_


@pytest.mark.parametrize(
    "text",
    ["", "soon", "every 10s", "0s", "0 9 * *", "* * * * * *", "60 * * * *", "0 25 * * *",
     "0 0 30 2 *", "daily at 25:00", "xyz at 9:00", "5-1 * * * *", "*/0 * * * *"],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_schedule(text, 1_700_000_000)


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        parse_schedule(text, 1_700_000_000)
    except UsageError as error:
        assert str(error)


@given(
    st.integers(0, 59), st.integers(0, 23), st.integers(1, 28), st.integers(1, 12),
    st.floats(1_500_000_000, 1_900_000_000),
)  # fmt: skip
def test_the_next_time_is_later_and_fits(
    minute: int, hour: int, day: int, month: int, after: float
) -> None:
    schedule = parse_schedule(f"{minute} {hour} {day} {month} *", after)
    moment = next_run(schedule, after)
    assert moment is not None
    assert after < moment < after + 2 * 366 * 86_400
    shown = time.localtime(moment)
    assert (shown.tm_mday, shown.tm_mon) == (day, month)


def test_names_and_sunday_by_both_numbers() -> None:
    assert parse_expression("0 0 * * 7") == parse_expression("0 0 * * 0")
    assert parse_expression("0 0 * * sun") == parse_expression("0 0 * * 0")
