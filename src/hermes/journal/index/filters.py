"""Restricts a search by session, role and time, and finds the time that a question names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce

from hermes.codec.values import Value
from hermes.journal.index import docs as sets
from hermes.journal.index.build import BEGINS, role_term, seconds_of, session_term
from hermes.journal.index.docs import Docs
from hermes.journal.index.file import IndexFile, SegmentInfo
from hermes.journal.index.segment import Segment
from hermes.journal.index.source import ROLES, EventRow, Role

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_SHORT = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"sept": 9}
_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)} | _SHORT
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_UNITS = {"day": 1, "week": 7, "month": 31, "year": 366}
_MONTH = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"

_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b")
_DAY_FIRST = re.compile(rf"\b{_DAY}(?: of)? (?P<name>{_MONTH})\b\.?,?(?: {_YEAR})?")
_MONTH_FIRST = re.compile(rf"\b(?P<name>{_MONTH})\b\.?(?: {_DAY}\b)?,?(?: (?:of )?{_YEAR})?")
_SEASON = re.compile(rf"\b(?P<name>{'|'.join(_SEASONS)})\b(?: (?:of )?{_YEAR})?")
_ONLY_YEAR = re.compile(rf"\b{_YEAR}\b")
_RELATIVE = re.compile(
    r"\b(?:(?P<word>today|yesterday)|(?P<which>last|this|past) (?P<unit>day|week|month|year)"
    r"|(?P<count>\d+|a|an|two|three|four|five|six) (?P<units>day|week|month|year)s? ago)\b"
)
_COUNTS = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
# People report events on a later day, and the question names the day of the event.
_DAYS_AFTER_DAY, _DAYS_AFTER_MONTH = 7, 14


class Period(Value):
    """A period in seconds since 1970."""

    since: float  # inclusive
    until: float  # exclusive
    months: tuple[int, ...] = ()  # without a year, the period is these months of any year

    def holds(self, at: float) -> bool:
        if not self.since <= at < self.until:
            return False
        return not self.months or datetime.fromtimestamp(at, UTC).month in self.months


def named_in(query: str, now: float) -> Period | None:
    """Return the time that a text names, in English or as an ISO date."""
    low = query.lower()
    if found := _ISO.search(low):
        return _period(int(found["year"]), int(found["month"]), found["day"])
    if found := _DAY_FIRST.search(low) or _month_first(query, low):
        year = int(found["year"]) if found["year"] else 0
        last = re.search(rf"\blast {found['name']}", low)
        if last and not year:
            today = datetime.fromtimestamp(now, UTC)
            year = today.year - (_NUMBERS[found["name"]] >= today.month)
        return _period(year, _NUMBERS[found["name"]], found["day"])
    if found := _SEASON.search(low):
        return _months(int(found["year"]), _SEASONS[found["name"]], 3) if found["year"] else None
    if found := _ONLY_YEAR.search(low):
        return _months(int(found["year"]), 1, 12)
    return _relative(low, now)


def _month_first(query: str, low: str) -> re.Match[str] | None:
    """Return a month by its name. `may` and `march` are also verbs: they count with a capital
    letter, or beside a number or time word."""
    for found in _MONTH_FIRST.finditer(low):
        if found["name"] not in ("may", "march", "mar", "sep", "dec", "jan", "jun", "sun"):
            return found
        written = query[found.start()]
        before = low[: found.start()].split()[-1:]
        if found["year"] or found["day"] or before == ["last"] or (written.isupper() and before):
            return found
    return None


def _relative(low: str, now: float) -> Period | None:
    found = _RELATIVE.search(low)
    if found is None:
        return None
    day = 86_400.0
    midnight = now - now % day
    if found["word"]:
        since = midnight - day * (found["word"] == "yesterday")
        return Period(since=since, until=since + day)
    if found["which"]:
        days = _UNITS[found["unit"]]
        factor = 1 if found["which"] == "this" else 2
        return Period(since=midnight - days * factor * day, until=now + day)
    count = _COUNTS.get(found["count"]) or int(found["count"])
    days = _UNITS[found["units"]]
    middle = midnight - count * days * day
    return Period(since=middle - days * day / 2, until=middle + days * day / 2 + day)


def _period(year: int, month: int, day: str | None) -> Period | None:
    if not 1 <= month <= 12:
        return None
    if not year:
        return Period(since=0.0, until=float("inf"), months=(month,))
    if not day:
        return _months(year, month, 1, days_after=_DAYS_AFTER_MONTH)
    try:
        first = datetime(year, month, int(day), tzinfo=UTC)
    except ValueError:
        return None
    until = first + timedelta(days=1 + _DAYS_AFTER_DAY)
    return Period(since=first.timestamp(), until=until.timestamp())


def _months(year: int, month: int, count: int, *, days_after: int = 0) -> Period:
    first = datetime(year, month, 1, tzinfo=UTC)
    end = month - 1 + count
    last = datetime(year + end // 12, end % 12 + 1, 1, tzinfo=UTC)
    until = last + timedelta(days=days_after)
    return Period(since=first.timestamp(), until=until.timestamp())


_FEW_SESSIONS = 16
_SMALL = 8_192


class SegmentScope:
    """A segment and the messages in it that pass the filters."""

    def __init__(self, segment: Segment, filters: Filters) -> None:
        self.segment = segment
        self._filters = filters

    @cached_property
    def allowed(self) -> Docs | None:
        """The messages that pass the filters, with times in whole seconds; None for all."""
        return self._filters.select(self.segment)

    @cached_property
    def begins(self) -> Docs:
        """The messages that begin a session, and the number after the last."""
        stored, end = self.segment.docs(BEGINS.encode()), self.segment.info.docs
        if isinstance(stored, bytes) and end > _SMALL:
            return sets.extend(stored, end)
        return {*sets.members(stored), end}

    def within(self, period: Period) -> Docs:
        """Return the messages written in a period, regardless of the filters."""
        info = self.segment.info
        if info.newest < period.since or info.oldest >= period.until:
            return sets.NOTHING
        seconds = enumerate(self.segment.seconds())
        return {number for number, second in seconds if period.holds(second)}


class Filters(Value):
    """Which messages a search may find; None allows all. Times are seconds since 1970."""

    sessions: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    roles: frozenset[Role] | None = None
    since: float | None = None  # inclusive
    until: float | None = None  # exclusive

    def allows(self, row: EventRow) -> bool:
        return (
            (self.sessions is None or row.session_id in self.sessions)
            and row.session_id not in self.exclude
            and (self.roles is None or ROLES.get(row.kind) in self.roles)
            and (self.since is None or row.at >= self.since)
            and (self.until is None or row.at < self.until)
        )

    def scopes(self, file: IndexFile, segments: Sequence[SegmentInfo]) -> list[SegmentScope]:
        """Return the segments that can hold such messages, newest first."""
        first, last = self._seconds()
        scopes = [
            SegmentScope(Segment(file, info), self)
            for info in reversed(segments)
            if info.newest >= first and info.oldest <= last
        ]
        few = self.sessions is not None and len(self.sessions) <= _FEW_SESSIONS
        return [scope for scope in scopes if scope.allowed] if few else scopes

    def _seconds(self) -> tuple[float, float]:
        """Return the whole seconds that contain all allowed messages."""
        first = seconds_of(self.since) if self.since is not None else 0
        return first, seconds_of(self.until) if self.until is not None else float("inf")

    def select(self, segment: Segment) -> Docs | None:
        limits: list[Docs] = []
        if self.sessions is not None:
            limits.append(_of_sessions(segment, self.sessions))
        if self.roles is not None:
            limits.append(sets.union([segment.docs(role_term(r).encode()) for r in self.roles]))
        first, last = self._seconds()
        if segment.info.oldest < first or segment.info.newest > last:
            seconds = enumerate(segment.seconds())
            limits.append({number for number, second in seconds if first <= second <= last})
        if self.exclude:
            everything = sets.everything(segment.info.docs)
            limits.append(sets.difference(everything, _of_sessions(segment, self.exclude)))
        return reduce(sets.intersection, limits) if limits else None


NO_FILTERS = Filters()


def _of_sessions(segment: Segment, sessions: frozenset[str]) -> Docs:
    terms = {session_term(name).encode() for name in sessions}
    return segment.docs_of(session_term("").encode(), terms)
