"""What people write about when a job runs, and the moments that it means."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import UsageError
from hermes.cron.expressions import parse_expression
from hermes.cron.schedule import format_time, next_run, parse_schedule


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
    ("schedule", "zone", "after", "runs"),
    [
        # New York: 2026-03-08 from 2 to 3, 2026-11-01 from 2 back to 1.
        (
            "30 2 * * *", "America/New_York", "2026-03-07T12:00-05:00",
            ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        (
            "30 1 * * *", "America/New_York", "2026-10-31T12:00-04:00",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        (
            "*/30 1-3 * * *", "Europe/Berlin", "2026-03-29T01:00+01:00",
            ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00",
             "2026-03-30T01:00:00+02:00"],
        ),
        (
            "*/30 2 * * *", "Europe/Berlin", "2026-10-25T01:59+02:00",
            ["2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:00:00+01:00"],
        ),
        # An interval is a length of time and ignores the clock on the wall.
        (
            "every 12h", "Europe/Berlin", "2026-03-28T21:00+01:00",
            ["2026-03-29T10:00:00+02:00", "2026-03-29T22:00:00+02:00"],
        ),
        (
            "0 12 29 2 *", "America/New_York", "2026-01-01T00:00-05:00",
            ["2028-02-29T12:00:00-05:00", "2032-02-29T12:00:00-05:00"],
        ),
        (
            "0 0 31 * *", "America/New_York", "2026-01-30T00:00-05:00",
            ["2026-01-31T00:00:00-05:00", "2026-03-31T00:00:00-04:00", "2026-05-31T00:00:00-04:00"],
        ),
        (
            "every monday at 9am", "Europe/Berlin", "2026-03-24T00:00+01:00",
            ["2026-03-30T09:00:00+02:00"],
        ),
    ],
)  # fmt: skip
def test_runs_follow_the_configured_zone_not_that_of_the_machine(
    schedule: str, zone: str, after: str, runs: list[str]
) -> None:
    parsed, moment, found = parse_schedule(schedule, at(after), zone=zone), at(after), []
    for _ in runs:
        following_run = next_run(parsed, moment, last=moment, zone=zone)
        assert following_run is not None
        found.append(format_time(following_run, zone))
        moment = following_run
    assert found == runs


def test_a_naive_time_is_in_the_zone_and_moves_with_it() -> None:
    now = at("2026-02-01T00:00Z")
    naive = parse_schedule("2026-02-03 14:00", now, zone="Europe/Berlin")
    fixed = parse_schedule("2026-02-03T14:00+01:00", now, zone="Europe/Berlin")
    assert naive.run_at == fixed.run_at == "2026-02-03T14:00:00+01:00"
    assert (naive.is_local, fixed.is_local) == (True, False)
    new_york = "America/New_York"
    assert next_run(naive, now, zone=new_york) == at("2026-02-03T14:00-05:00")
    assert next_run(fixed, now, zone=new_york) == at("2026-02-03T14:00+01:00")


def test_a_late_interval_stays_on_its_grid() -> None:
    schedule = parse_schedule("every 1h", 0.0)
    assert next_run(schedule, 10_000.0, last=3_600.0) == 10_800.0
    # The clock was set back.
    assert next_run(schedule, 1_000.0, last=3_600.0) == 4_600.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a schedule; use"),
        ("soon", "is not a schedule; use"),
        ("every 10s", "at least 60 seconds"),
        ("every 59 sec", "at least 60 seconds"),
        ("0s", "between one second and ten years"),
        ("in 20 lightyears", "is not a schedule; use"),
        ("0 9 * *", "has 4 fields; use five"),
        ("* * * * * *", "has 6 fields; use five"),
        ("0 0 9 * * 1-5", "Seconds and years are not supported"),
        ("0 9 * * 1-5 2026", "Seconds and years are not supported"),
        ("0 9 L * *", "'L' (the last day) is not supported"),
        ("0 9 * * 5L", "'L' (the last day) is not supported"),
        ("0 9 15W * *", "'W' (the nearest weekday) is not supported"),
        ("0 9 * * 1#2", "'#' (the n-th weekday of a month) is not supported"),
        ("0 9 ? * 1", "'?' (any day) is not supported"),
        ("0 9 * * someday", "'someday' is not a valid day of the week"),
        ("0 9 * foo *", "'foo' is not a valid month"),
        ("@reboot", "'@reboot' is not supported; use one of @hourly"),
        ("60 * * * *", "'60' is not a valid minute"),
        ("0 25 * * *", "'25' is not a valid hour"),
        ("5-1 * * * *", "'5-1' is not a valid minute"),
        ("*/0 * * * *", "'*/0' is not a valid minute"),
        ("0 0 30 2 *", "never occurs"),
        ("daily at 25:00", "'25:00' is not a time of day"),
        ("daily at 13pm", "'13pm' is not a time of day"),
        ("xyz at 9:00", "'xyz' is not a valid day of the week"),
        ("every 2d at 9:00", "A time of day goes with `every 1d`"),
        ("2001-01-01T00:00", "is in the past"),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_schedule(text, 1_700_000_000)
    assert reason in str(refused.value)


def test_the_least_interval_is_a_setting_and_holds_for_expressions_too() -> None:
    for text in ("every 5m", "*/5 * * * *", "0,5 9 * * *"):
        with pytest.raises(UsageError):
            parse_schedule(text, 0.0, least_seconds=600)
        parse_schedule(text, 0.0, least_seconds=300)


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(UsageError, match="There is no time zone 'Mars/Base'"):
        parse_schedule("daily at 9:00", 0.0, zone="Mars/Base")


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
