"""Restricts a search by session, role and time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hermes.codec.values import Value
from hermes.journal.index import docs as sets
from hermes.journal.index.build import BEGINS, role_term, seconds_of, session_term
from hermes.journal.index.docs import Docs
from hermes.journal.index.file import IndexFile, SegmentInfo
from hermes.journal.index.periods import Period
from hermes.journal.index.segment import Segment
from hermes.journal.index.texts import ROLES, EventRow, Role

_FEW_SESSIONS = 16
_SMALL = 8_192


class SegmentScope:
    """A segment and the messages in it that pass the filters."""

    def __init__(self, segment: Segment, filters: Filters) -> None:
        self.segment = segment
        self._filters = filters

    @cached_property
    def allowed(self) -> Docs | None:
        """To the second; None for all of them."""
        return self._filters.select(self.segment)

    @cached_property
    def begins(self) -> Docs:
        """The messages that begin a session, and the number after the last."""
        stored, end = self.segment.docs(BEGINS.encode()), self.segment.info.docs
        if isinstance(stored, bytes) and end > _SMALL:
            return sets.extend(stored, end)
        return {*sets.members(stored), end}

    def within(self, period: Period) -> Docs:
        """The messages written in a period, regardless of the filters."""
        info = self.segment.info
        if info.newest < period.since or info.oldest >= period.until:
            return sets.NOTHING
        seconds = enumerate(self.segment.seconds())
        return {number for number, second in seconds if period.holds(second)}


class Filters(Value):
    """None allows all. Times are seconds since 1970: `since` inclusive, `until` exclusive."""

    sessions: frozenset[str] | None = None
    exclude: frozenset[str] = frozenset()
    roles: frozenset[Role] | None = None
    since: float | None = None
    until: float | None = None

    def allows(self, row: EventRow) -> bool:
        return (
            (self.sessions is None or row.session_id in self.sessions)
            and row.session_id not in self.exclude
            and (self.roles is None or ROLES.get(row.kind) in self.roles)
            and (self.since is None or row.at >= self.since)
            and (self.until is None or row.at < self.until)
        )

    def scopes(self, file: IndexFile, segments: Sequence[SegmentInfo]) -> list[SegmentScope]:
        """The segments that can hold such messages, newest first."""
        first, last = self._seconds()
        scopes = [
            SegmentScope(Segment(file, info), self)
            for info in reversed(segments)
            if info.newest >= first and info.oldest <= last
        ]
        few = self.sessions is not None and len(self.sessions) <= _FEW_SESSIONS
        return [scope for scope in scopes if scope.allowed] if few else scopes

    def _seconds(self) -> tuple[float, float]:
        """The whole seconds that contain all allowed messages."""
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
        allowed: Docs | None = None
        for limit in limits:
            allowed = limit if allowed is None else sets.intersection(allowed, limit)
        return allowed


def _of_sessions(segment: Segment, sessions: frozenset[str]) -> Docs:
    terms = {session_term(name).encode() for name in sessions}
    return segment.docs_of(session_term("").encode(), terms)
