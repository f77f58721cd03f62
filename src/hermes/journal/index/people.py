"""Names in a question, and the sessions that they concern."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property

from hermes.journal.index import docs as sets
from hermes.journal.index.filters import SegmentScope
from hermes.journal.index.lookup import Evidence

_NAMED_IN_SESSION = 0.4
_OTHER_PEOPLE = 0.45
_OTHER_TALK = 0.95
_PER_MENTION = 0.2
_MOST_MENTIONS = 400


class NamedPeople:
    """The names among the clauses; names that occur nowhere do not count."""

    def __init__(
        self, wishes: Sequence[Evidence], scopes: Sequence[SegmentScope], total: int
    ) -> None:
        self._docs = {
            place: one.docs
            for place, one in enumerate(wishes)
            if one.clause.name and one.docs and one.frequency
        }
        self._worth = {p: _NAMED_IN_SESSION * wishes[p].rarity(total) for p in self._docs}
        self._scopes = scopes
        self._begins: dict[int, list[int]] = {}
        self._mentions: dict[tuple[int, int], list[int]] = {}
        self._known: dict[tuple[int, int], Mapping[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._docs)

    def names_in_session(self, scope: int, number: int) -> Mapping[int, float]:
        """The names that occur in the session of a message, by the index of their clause, with
        their weight: a name concerns the whole session."""
        begins = self._beginnings(scope)
        session = bisect_right(begins, number)
        if (scope, session) not in self._known:
            first, end = begins[session - 1] if session else 0, begins[session]
            self._known[scope, session] = {
                place: worth
                for place, worth in self._worth.items()
                if _any_between(self._mention_positions(scope, place), first, end)
            }
        return self._known[scope, session]

    @cached_property
    def elsewhere(self) -> float:
        """The weight of a message in a session without any of the names: lower when these people
        are usually named often, as speakers are."""
        often = max((self._mentions_per_session(place) for place in self._docs), default=1.0)
        return max(_OTHER_PEOPLE, _OTHER_TALK - _PER_MENTION * (often - 1))

    def _mentions_per_session(self, place: int) -> float:
        """How often a name occurs per session that contains it, estimated from the first ones."""
        mentions = sessions = 0
        for scope in range(len(self._docs[place])):
            some = self._mention_positions(scope, place)[:_MOST_MENTIONS]
            begins = self._beginnings(scope)
            mentions += len(some)
            sessions += len({bisect_right(begins, number) for number in some})
            if mentions >= _MOST_MENTIONS:
                break
        return mentions / max(1, sessions)

    def _mention_positions(self, scope: int, place: int) -> list[int]:
        if (scope, place) not in self._mentions:
            self._mentions[scope, place] = sorted(sets.members(self._docs[place][scope]))
        return self._mentions[scope, place]

    def _beginnings(self, scope: int) -> list[int]:
        if scope not in self._begins:
            self._begins[scope] = sorted(sets.members(self._scopes[scope].begins))
        return self._begins[scope]


def _any_between(numbers: list[int], first: int, end: int) -> bool:
    at = bisect_left(numbers, first)
    return at < len(numbers) and numbers[at] < end
