"""Parses cron expressions with five fields, and says which days and minutes they cover."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from hermes.core.errors import UsageError

_MONTHS = dict(
    zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True)
)
WEEK = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))
# Extensions of other schedulers, with what they mean there.
_UNSUPPORTED = {
    "l": "the last day",
    "w": "the nearest weekday",
    "#": "the n-th weekday of a month",
    "?": "any day",
}


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
    CronField("day of the week", 0, 7, WEEK),
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

    @property
    def shortest_minutes(self) -> int:
        """The shortest time between two runs, as if every day were covered."""
        times = [60 * hour + minute for hour, minute in self.times]
        following = [*times[1:], times[0] + 24 * 60]
        return min(later - earlier for earlier, later in zip(times, following, strict=True))

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
        raise UsageError(
            f"{text!r} has {len(words)} fields; use five: minute, hour, day, month and day of the "
            "week. Seconds and years are not supported."
        )
    sets = [_parse_field(word, field) for word, field in zip(words, _FIELDS, strict=True)]
    minutes, hours, days, months, week = sets
    weekdays = frozenset(day % 7 for day in week)
    return CronExpression(
        minutes, hours, days, months, weekdays, words[2][0] == "*", words[4][0] == "*"
    )


def _parse_field(word: str, field: CronField) -> frozenset[int]:
    values: set[int] = set()
    for part in word.split(","):
        _refuse_extension(part, field)
        span, _, step = part.partition("/")
        every = _number(step, field) if step else 1
        if span == "*":
            low, high = field.least, min(field.most, 6) if field.names is WEEK else field.most
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


def _refuse_extension(part: str, field: CronField) -> None:
    for sign, meaning in _UNSUPPORTED.items():
        is_suffix = sign in "lw" and part.rstrip(sign).rstrip("0123456789-") == "" and part != ""
        if (is_suffix and part.endswith(sign)) or (sign in "#?" and sign in part):
            raise UsageError(
                f"{part!r} is not a valid {field.name}: {sign.upper()!r} ({meaning}) is not "
                "supported; list the days instead."
            )


def _number(word: str, field: CronField) -> int:
    if word in field.names:
        return field.names[word]
    if not (word.isascii() and word.isdigit() and len(word) <= 3):
        raise UsageError(f"{word!r} is not a valid {field.name}.")
    return int(word)
