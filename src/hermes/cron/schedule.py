"""Parses schedules and computes their runs in a time zone, across changes of the clock."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import UsageError
from hermes.cron.expressions import WEEK, CronExpression, parse_expression

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

LEAST_SECONDS = 60
# A time that has just passed is still accepted.
LATE_SECONDS = 120
# 29 February may be eight years away.
MOST_DAYS = 366 * 8 + 2
MOST_SECONDS = 3_660 * 86_400
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
_DAYS = re.compile(r"(.+?) at (.+)")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?")
_CRON_WORD = re.compile(r"[\d*?/,#-]+[lw]?|[lw]", re.ASCII)
_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_EVERY_DAY = ("every 1d", "every 1 day", "every day", "daily", "day", "1d")
_OF_DAYS = {"weekday": "1-5", "weekdays": "1-5", "weekend": "0,6", "weekends": "0,6"}
_FULL_NAMES = dict(
    zip(
        "sunday monday tuesday wednesday thursday friday saturday".split(),
        WEEK,
        strict=True,
    )
)


class Schedule(Value):
    """When a job runs. Times of day and naive times are in the zone that is given to `next_run`."""

    kind: Literal["once", "interval", "cron"]
    display: str = ""
    # For "once": with offset; `local` is the time as written if it has no offset.
    run_at: str = ""
    local: str = ""
    # For "interval".
    seconds: int = 0
    # For "cron".
    expr: str = ""

    @property
    def is_local(self) -> bool:
        """Whether its runs depend on the time zone."""
        return self.kind == "cron" or bool(self.local)

    def fields(self) -> JsonObject:
        """The schedule as a job stores it."""
        names = ("kind", "run_at", "local", "seconds", "expr")
        return {name: value for name in names if (value := getattr(self, name))}


def parse_schedule(
    text: str, now: float, *, zone: str = "", least_seconds: int = LEAST_SECONDS
) -> Schedule:
    """Parse a schedule. Raise UsageError that says what is wrong or lists the accepted forms."""
    plain = " ".join(text.strip().lower().split())
    schedule = (
        _once(plain, now, zone)
        or _interval(plain, least_seconds)
        or _cron(plain, zone, least_seconds)
        or _timestamp(text.strip(), now, zone)
    )
    if schedule is None:
        raise UsageError(f"{text[:80]!r} is not a schedule; use {FORMS}.")
    return schedule


def next_run(
    schedule: Schedule, after: float, *, last: float | None = None, zone: str = ""
) -> float | None:
    """Return the first run after `after`, or None. An interval counts from the `last` due time, so
    that late runs do not shift it."""
    match schedule.kind:
        case "once":
            return run_at(schedule, zone) if last is None else None
        case "interval":
            if last is None or last > after:
                return after + schedule.seconds
            missed = int((after - last) // schedule.seconds)
            return last + (missed + 1) * schedule.seconds
        case "cron":
            return _next(_expression(schedule.expr), after, _load_zone(zone))


def run_at(schedule: Schedule, zone: str) -> float:
    """The time of a one-shot schedule."""
    if schedule.local:
        return _resolve(datetime.fromisoformat(schedule.local), _load_zone(zone))
    return datetime.fromisoformat(schedule.run_at).timestamp()


def period_seconds(schedule: Schedule, due: float, zone: str) -> float:
    """The time from a run to the next one; 0 if there is none."""
    following = next_run(schedule, due, last=due, zone=zone)
    return following - due if following is not None else 0.0


def format_time(moment: float, zone: str = "") -> str:
    """Format a time with zone offset, to the second."""
    known = _load_zone(zone)
    return datetime.fromtimestamp(int(moment), known).astimezone(known).isoformat()


def parse_time(text: str) -> float:
    """Read what `format_time` wrote."""
    return datetime.fromisoformat(text).timestamp()


def zone_name(zone: str) -> str:
    """The zone as people know it: its name, or the offset of this machine."""
    return zone or datetime.now().astimezone().tzname() or "local time"


def check_zone(zone: str) -> None:
    _load_zone(zone)


@lru_cache(maxsize=16)
def _load_zone(name: str) -> ZoneInfo | None:
    """None is the zone of the process."""
    if not name:
        return None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        message = f"There is no time zone {name!r}; set `timezone` to a name like Europe/Berlin."
        raise UsageError(message) from error


@lru_cache(maxsize=256)
def _expression(expr: str) -> CronExpression:
    return parse_expression(expr)


def _once(text: str, now: float, zone: str) -> Schedule | None:
    span = _SPAN.fullmatch(text.removeprefix("in "))
    if span is None or span[2] not in _UNITS:
        return None
    seconds = int(span[1]) * _UNITS[span[2]]
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageError("The delay must be between one second and ten years.")
    display = f"once in {text.removeprefix('in ')}"
    return Schedule(kind="once", display=display, run_at=format_time(now + seconds, zone))


def _interval(text: str, least: int) -> Schedule | None:
    span = _SPAN.fullmatch(text.removeprefix("every "))
    if not text.startswith("every ") or span is None or span[2] not in _UNITS:
        return None
    seconds = int(span[1]) * _UNITS[span[2]]
    if seconds < least:
        raise UsageError(f"The interval must be at least {least} seconds.")
    if seconds > MOST_SECONDS:
        raise UsageError("The interval must be at most ten years.")
    return Schedule(kind="interval", display=text, seconds=seconds)


def _cron(text: str, zone: str, least: int) -> Schedule | None:
    expr = _NICKNAMES.get(text, text)
    if text.startswith("@") and text not in _NICKNAMES:
        raise UsageError(f"{text!r} is not supported; use one of {', '.join(_NICKNAMES)}.")
    if days := _DAYS.fullmatch(text):
        minute, hour = _clock(days[2])
        expr = f"{minute} {hour} * * {_weekdays(days[1])}"
    words = expr.split()
    is_cron = len(words) == 5 or (len(words) > 3 and all(map(_CRON_WORD.fullmatch, words)))
    if not is_cron or not re.match(r"[\d*?/,#l-]", words[0]):
        return None
    expression = parse_expression(expr)
    if 60 * expression.shortest_minutes < least:
        raise UsageError(f"{text!r} runs more often than every {least} seconds.")
    if _next(expression, 0.0, _load_zone(zone)) is None:
        raise UsageError(f"{expr!r} never occurs.")
    return Schedule(kind="cron", display=text, expr=expr)


def _weekdays(text: str) -> str:
    """The last field of an expression for words like `weekdays` or `mon,thu`."""
    if text in _EVERY_DAY:
        return "*"
    if span := _SPAN.fullmatch(text.removeprefix("every ")):
        raise UsageError(
            f"A time of day goes with `every 1d` or weekdays, not with {span[0]!r}; "
            "use a cron expression such as `0 9 */2 * *`."
        )
    plain = text.removeprefix("every ").replace(" and ", ",").replace(", ", ",")
    names = [_FULL_NAMES.get(name, name) for name in plain.split(",")]
    return ",".join(_OF_DAYS.get(name, name) for name in names).replace(" ", "_")


def _clock(text: str) -> tuple[int, int]:
    match = _CLOCK.fullmatch(text)
    hour, minute = (int(match[1]), int(match[2] or 0)) if match else (99, 0)
    if match and match[3]:
        hour = hour % 12 + (12 if match[3] == "pm" else 0) if 1 <= hour <= 12 else 99
    if hour > 23 or minute > 59:
        raise UsageError(f"{text!r} is not a time of day.")
    return minute, hour


def _timestamp(text: str, now: float, zone: str) -> Schedule | None:
    try:
        written = datetime.fromisoformat(text.replace("Z", "+00:00")).replace(microsecond=0)
        local = "" if written.tzinfo else written.isoformat()
        moment = _resolve(written, _load_zone(zone)) if local else written.timestamp()
        shown = format_time(moment, zone)
    except (ValueError, OverflowError, OSError):
        return None
    if moment < now - LATE_SECONDS:
        raise UsageError(f"{text} is in the past; it is {format_time(now, zone)} now.")
    return Schedule(kind="once", display=f"once at {text}", run_at=shown, local=local)


def _next(expression: CronExpression, after: float, zone: ZoneInfo | None) -> float | None:
    day = datetime.fromtimestamp(after, zone).date()
    for _ in range(MOST_DAYS):
        if expression.covers(day):
            for hour, minute in expression.times:
                moment = _resolve(_at(day, hour, minute), zone)
                if moment > after:
                    return moment
        day += timedelta(days=1)
    return None


def _at(day: date, hour: int, minute: int) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001


def _resolve(local: datetime, zone: ZoneInfo | None) -> float:
    """Convert a local time. A skipped time becomes the first time after the gap; a repeated one its
    first occurrence."""
    moment = local.replace(tzinfo=zone, fold=0).timestamp()
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0) == local:
        return moment
    # In a gap, Python counts with the offset before it, so the moment is after the gap.
    offset = _offset(moment, zone)
    moment -= moment % 60
    while _offset(moment - 60, zone) == offset:
        moment -= 60
    return moment


def _offset(moment: float, zone: ZoneInfo | None) -> timedelta | None:
    return datetime.fromtimestamp(moment, zone).astimezone(zone).utcoffset()
