"""Parses schedules, including cron expressions, and computes the next run."""

from __future__ import annotations

import re
import time
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from hermes.codec.values import Value
from hermes.core.errors import UsageError

_MONTHS = dict(
    zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True)
)
_WEEK = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))


class CronField(NamedTuple):
    name: str
    least: int
    most: int
    names: dict[str, int]


_FIELDS = (
    CronField("minute", 0, 59, {}),
    CronField("hour", 0, 23, {}),
    CronField("day", 1, 31, {}),
    CronField("month", 1, 12, _MONTHS),
    CronField("day of the week", 0, 7, _WEEK),
)


class CronExpression(NamedTuple):
    """A cron expression. If neither the day nor the weekday starts with `*`, one match suffices."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    # The field starts with `*`.
    any_day: bool
    any_weekday: bool

    @property
    def times(self) -> list[tuple[int, int]]:
        return [(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes)]

    def covers(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


def parse_expression(text: str) -> CronExpression:
    """Parse a cron expression. Raise UsageError that names the invalid field."""
    words = text.lower().split()
    if len(words) != len(_FIELDS):
        raise UsageError(f"{text!r} is not a cron expression; write five fields.")
    sets = [_parse_field(word, field) for word, field in zip(words, _FIELDS, strict=True)]
    minutes, hours, days, months, week = sets
    weekdays = frozenset(day % 7 for day in week)
    return CronExpression(
        minutes, hours, days, months, weekdays, words[2][0] == "*", words[4][0] == "*"
    )


def _parse_field(word: str, field: CronField) -> frozenset[int]:
    values: set[int] = set()
    for part in word.split(","):
        span, _, step = part.partition("/")
        every = _number(step, field) if step else 1
        if span == "*":
            low, high = field.least, min(field.most, 6) if field.names is _WEEK else field.most
        elif "-" in span:
            first, _, last = span.partition("-")
            low, high = _number(first, field), _number(last, field)
        else:
            low = _number(span, field)
            high = field.most if step else low
        if not field.least <= low <= high <= field.most or every < 1:
            raise UsageError(f"{part!r} is not a valid {field.name}.")
        values.update(range(low, high + 1, every))
    return frozenset(values)


def _number(word: str, field: CronField) -> int:
    if word in field.names:
        return field.names[word]
    if not (word.isascii() and word.isdigit() and len(word) <= 3):
        raise UsageError(f"{word!r} is not a valid {field.name}.")
    return int(word)


LEAST_SECONDS = 60
# A time that has just passed is still accepted.
LATE_SECONDS = 120
# 29 February may be eight years away.
MOST_DAYS = 366 * 8 + 2
FORMS = (
    "`30m` or `in 2h`; `every 30m`; `daily at 9:00`, `weekdays at 09:00`, `mon,thu at 18:30`; "
    "`0 9 * * 1-5`, `@daily`; `2026-02-03T14:00`"
)
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}
_SPAN = re.compile(r"(\d{1,6})\s*([a-z]+)")
_DAYS = re.compile(r"(every 1d|every day|daily|weekdays|weekends|[a-z]{3}(?:,[a-z]{3})*) at (.+)")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_OF_DAYS = {"weekdays": "1-5", "weekends": "0,6"}


class Schedule(Value):
    """When a job runs. Times of day are in the process's time zone."""

    kind: Literal["once", "interval", "cron"]
    display: str
    # For "once".
    run_at: str = ""
    # For "interval".
    seconds: int = 0
    # For "cron".
    expr: str = ""


def parse_schedule(text: str, now: float) -> Schedule:
    """Parse a schedule. Raise UsageError that lists the accepted forms."""
    plain = " ".join(text.strip().lower().split())
    schedule = (
        _once(plain, now) or _interval(plain) or _cron(plain) or _timestamp(text.strip(), now)
    )
    if schedule is None:
        raise UsageError(f"{text[:80]!r} is not a schedule; use {FORMS}.")
    return schedule


def next_run(schedule: Schedule, after: float, *, last: float | None = None) -> float | None:
    """Return the next run, or None. An interval counts from the `last` run."""
    match schedule.kind:
        case "once":
            moment = datetime.fromisoformat(schedule.run_at).timestamp()
            return moment if last is None else None
        case "interval":
            return max(after, (last if last is not None else after) + schedule.seconds)
        case "cron":
            return _next(parse_expression(schedule.expr), after)


def format_time(moment: float) -> str:
    """Format a time with zone offset, to the second."""
    return datetime.fromtimestamp(int(moment)).astimezone().isoformat()


def _once(text: str, now: float) -> Schedule | None:
    span = _SPAN.fullmatch(text.removeprefix("in "))
    if span is None or span[2] not in _UNITS:
        return None
    seconds = int(span[1]) * _UNITS[span[2]]
    if not 0 < seconds <= 3_660 * 86_400:
        raise UsageError("The delay must be between one second and ten years.")
    display = f"once in {text.removeprefix('in ')}"
    return Schedule(kind="once", display=display, run_at=format_time(now + seconds))


def _interval(text: str) -> Schedule | None:
    span = _SPAN.fullmatch(text.removeprefix("every "))
    if not text.startswith("every ") or span is None or span[2] not in _UNITS:
        return None
    seconds = int(span[1]) * _UNITS[span[2]]
    if seconds < LEAST_SECONDS:
        raise UsageError(f"The interval must be at least {LEAST_SECONDS} seconds.")
    return Schedule(kind="interval", display=text, seconds=seconds)


def _cron(text: str) -> Schedule | None:
    expr = _NICKNAMES.get(text, text)
    if days := _DAYS.fullmatch(text):
        minute, hour = _clock(days[2])
        which = "*" if days[1] in ("every 1d", "every day", "daily") else days[1]
        expr = f"{minute} {hour} * * {_OF_DAYS.get(which, which)}"
    if len(expr.split()) != 5:
        return None
    if _next(parse_expression(expr), 0.0) is None:
        raise UsageError(f"{expr!r} matches no date; correct it.")
    return Schedule(kind="cron", display=text, expr=expr)


def _clock(text: str) -> tuple[int, int]:
    match = _CLOCK.fullmatch(text)
    hour, minute = (int(match[1]), int(match[2] or 0)) if match else (99, 0)
    if match and match[3]:
        hour = hour % 12 + (12 if match[3] == "pm" else 0) if 1 <= hour <= 12 else 99
    if hour > 23 or minute > 59:
        raise UsageError(f"{text!r} is not a time of day; write it like 09:30.")
    return minute, hour


def _timestamp(text: str, now: float) -> Schedule | None:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    if moment < now - LATE_SECONDS:
        raise UsageError(f"{text} is in the past; choose a later time.")
    return Schedule(kind="once", display=f"once at {text}", run_at=format_time(moment))


def _next(expression: CronExpression, after: float) -> float | None:
    begin = time.localtime(after)
    day = date(begin.tm_year, begin.tm_mon, begin.tm_mday)
    for _ in range(MOST_DAYS):
        if expression.covers(day):
            for hour, minute in expression.times:
                moment = _at(day, hour, minute)
                if moment > after:
                    return moment
        day += timedelta(days=1)
    return None


def _at(day: date, hour: int, minute: int) -> float:
    """Convert a local time. A skipped time becomes the first time after the gap; a repeated one its
    first occurrence."""
    for isdst in (1, -1):
        moment = time.mktime((day.year, day.month, day.day, hour, minute, 0, 0, 0, isdst))
        shown = time.localtime(moment)
        if (shown.tm_mday, shown.tm_hour, shown.tm_min) == (day.day, hour, minute):
            return moment
    before = time.mktime((day.year, day.month, day.day, hour, minute, 0, 0, 0, 0))
    # The end of the gap is on a whole quarter of an hour.
    while time.localtime(before - 60).tm_isdst:
        before -= 60
    return before
