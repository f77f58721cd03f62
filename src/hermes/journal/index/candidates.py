"""Selects which messages from the index are worth reading: those with many rare words in them or
their neighbours."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import islice
from typing import NamedTuple

from hermes.journal.index import docs as sets
from hermes.journal.index.build import SIZES, size_term
from hermes.journal.index.docs import Docs
from hermes.journal.index.filters import Period, SegmentScope
from hermes.journal.index.lookup import Evidence, NamedPeople, rarity

_MOST_COUNTED = 8_192
_MOST_SPREAD = 800
_MOST_ALIKE = 512
_SMALL = 20_000
_NEIGHBOUR = 0.5
_SECOND_NEIGHBOUR = 0.15
_WIDE = 3
_IN_PERIOD = 0.5
_MOST_FOR_PERIOD = 2.5
_LEAST_FACTOR = min(factor for _, factor in SIZES)


class CandidateMessage(NamedTuple):
    """What the index knows about a message, which is identified by its scope and number."""

    # Per clause, how much of it the message or a neighbour matches, times its rarity.
    shares: Sequence[float]
    extra: float = 0.0  # other evidence
    own: bool = False  # whether the message itself has any of the words
    factor: float = 1.0  # below 1 in a session about other people
    worth: float = 0.0
    scope: int = 0
    number: int = 0


Share = dict[int, float]

_Rank = tuple[float, int, int]
"""The score, scope and number of a message. All but the scope are negative, so that the best and
newest sort first."""


def choose(
    evidence: Sequence[Evidence],
    scopes: Sequence[SegmentScope],
    total: int,
    most: int,
    period: Period | None = None,
) -> Iterable[CandidateMessage]:
    """Return at most `most` messages, the most promising first, and of equals the newest. The
    scopes begin with the newest; `total` is their number of messages."""
    positive = [one for one in _without_unwanted(evidence) if one.clause.rule != "not"]
    sought = [one for one in positive if one.docs]
    if not any(one.is_known for one in sought) and (period is None or not sought):
        return []
    counted = _affordable(sought, total)
    spans = min(len(one.docs) for one in sought)
    people = NamedPeople(positive, scopes[:spans], total)
    wide = most * _WIDE if people else most
    tallies = [
        _Tally(positive, counted, scope, index, total, period, people, wide)
        for index, scope in enumerate(scopes[:spans])
    ]
    ranked: list[_Rank] = []
    for tally in tallies:
        # Once there are enough, an older scope only adds better ones.
        least = -ranked[-1][0] if len(ranked) == wide else 0.0
        if more := tally.rank(above=least):
            ranked = sorted(ranked + more)[:wide]
    found = (tallies[index].candidate(-number, -worth) for worth, index, number in ranked)
    silent = [tally for tally in tallies if not tally.has_found] if len(ranked) < most else []
    if not people and not silent:
        return found
    every = list(found)
    for tally in silent:
        if len(every) < most:
            every += tally.newest(most - len(every))
    return heapq.nsmallest(most, every, key=lambda one: (-one.worth, one.scope, -one.number))


def _without_unwanted(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Remove messages with excluded words. An excluded phrase is only certain once the text is
    read."""
    wanted = list(evidence)
    for bad in (e for e in evidence if e.clause.rule == "not" and len(e.clause.atoms) == 1):
        wanted = [
            e._replace(docs=[sets.difference(*pair) for pair in zip(e.docs, bad.docs, strict=True)])
            if e.docs and e is not bad
            else e
            for e in wanted
        ]
    return wanted


def _affordable(sought: Sequence[Evidence], total: int) -> set[int]:
    """Return the indices of the rarest clauses, whose messages can be enumerated; in a small index,
    of all."""
    spent = 0
    found: set[int] = set()
    order = sorted(range(len(sought)), key=lambda index: sought[index].frequency)
    for index in order:
        near = [one.frequency for one in sought[index].near]
        spent += sought[index].frequency + sum(n for n in near if _is_countable(n, total))
        if spent > _MOST_COUNTED and (found or total > _MOST_COUNTED):
            break
        found.add(id(sought[index].clause))
    return found


class _Tally:
    """The messages of one scope with their evidence."""

    def __init__(
        self,
        positive: Sequence[Evidence],
        counted: set[int],
        scope: SegmentScope,
        index: int,
        total: int,
        period: Period | None,
        people: NamedPeople,
        most: int,
    ) -> None:
        self._positive = positive
        self._people = people
        self._most = most
        self._scope = scope
        self._scope_index = index
        self._rarities = [one.rarity(total) for one in positive]
        self._own: set[int] = set()
        self._shares: list[Share] = [{} for _ in positive]
        self._totals: Share = {}
        common: list[int] = []
        for number, one in enumerate(positive):
            if id(one.clause) in counted:
                self._count(number, total)
            elif one.docs:
                common.append(number)
        self._extra = self._in_period(period, total) if period else {}
        for number in common:
            self._add_common(number)
        # Only messages that pass the filters and match all required clauses remain.
        limits = [one.docs[index] for one in positive if _is_must(one)]
        for limit in limits if scope.allowed is None else [*limits, scope.allowed]:
            passed = sets.among(set(self._totals), limit)
            self._totals = {number: self._totals[number] for number in passed}

    @property
    def has_found(self) -> bool:
        return bool(self._totals)

    def rank(self, *, above: float) -> list[_Rank]:
        """Return the best messages that score higher than `above`. Short answers and printouts
        count less."""
        most = self._most
        totals = self._totals
        if above:
            totals = {number: worth for number, worth in totals.items() if worth > above}
        if not totals:
            return []
        some = _promising(totals, most, least=_LEAST_FACTOR)
        weighed = {number: totals[number] for number in some}
        for size, (_, factor) in enumerate(SIZES):
            if factor < 1:
                docs = self._scope.segment.docs(size_term(size).encode())
                for number in sets.among(some, docs):
                    weighed[number] *= factor
        some = _promising(weighed, most)
        if len(some) > 2 * most:
            # Very many are equal: take the newest.
            some = set(heapq.nlargest(most, some, key=lambda number: (weighed[number], number)))
        return [(-weighed[number], self._scope_index, -number) for number in some]

    def _count(self, number: int, total: int) -> None:
        """Add all messages of a clause and their neighbours."""
        one = self._positive[number]
        docs = one.docs[self._scope_index]
        if len(self._positive) == 1:
            docs = set(islice(sets.newest(docs), max(_MOST_ALIKE, self._most)))
        levels = [(self._rarities[number], docs)]
        levels += [
            (near.weight * rarity(near.frequency, total), near.docs[self._scope_index])
            for near in one.near
            if near.docs[self._scope_index] and _is_countable(near.frequency, total)
        ]
        plain = [(value, _numbers(docs)) for value, docs in levels if docs]
        share = self._spread(plain) if _is_countable(one.frequency, total) else _level(plain)
        self._own.update(*(docs for _, docs in plain))
        self._shares[number] = share
        totals = self._totals
        before = totals.get
        for message, value in share.items():
            totals[message] = before(message, 0.0) + value

    def _spread(self, levels: list[tuple[float, set[int]]]) -> Share:
        """Return each message with the highest score of its own words or its neighbours'."""
        begins = self._scope.begins
        reached: list[tuple[float, set[int]]] = []
        for value, here in levels:
            after = sets.not_among({number + 1 for number in here}, begins)
            before = {number - 1 for number in sets.not_among(here, begins)}
            later = sets.not_among({number + 1 for number in after}, begins)
            earlier = {number - 1 for number in sets.not_among(before, begins)}
            reached.append((value, here))
            reached.append((value * _NEIGHBOUR, after | before))
            reached.append((value * _SECOND_NEIGHBOUR, later | earlier))
        return _level(reached)

    def _in_period(self, period: Period, total: int) -> Share:
        held = self._scope.within(period)
        count = sets.size_of(held)
        if not count:
            return {}
        worth = min(_MOST_FOR_PERIOD, _IN_PERIOD * rarity(count, total))
        extra = dict.fromkeys(_numbers(held), worth)
        if not any(one.is_known for one in self._positive):
            self._own |= _numbers(held)
        for number, value in extra.items():
            self._totals[number] = self._totals.get(number, 0.0) + value
        return extra

    def _add_common(self, number: int) -> None:
        """Add a very common clause, which only counts for messages that others found."""
        docs = self._positive[number].docs[self._scope_index]
        if self._totals:
            held = sets.among(set(self._totals), docs)
            self._shares[number] = dict.fromkeys(held, self._rarities[number])
            self._own |= held
            for message in held:
                self._totals[message] += self._rarities[number]

    def newest(self, most: int) -> list[CandidateMessage]:
        """Return the newest messages with all clauses when all are common, then without the
        commonest, and so on."""
        musts = [one for one in self._positive if _is_must(one)]
        rest = [one for one in self._positive if one.docs and one.frequency and not _is_must(one)]
        ordered = [*musts, *sorted(rest, key=lambda one: one.frequency)]
        found: dict[int, CandidateMessage] = {}
        for wanted in range(len(ordered), max(1, len(musts)) - 1, -1):
            together = reduce(
                sets.intersection, [one.docs[self._scope_index] for one in ordered[:wanted]]
            )
            for number in sets.newest(together):
                if len(found) == most:
                    return list(found.values())
                shares = [
                    rarity
                    if one.docs and sets.among({number}, one.docs[self._scope_index])
                    else 0.0
                    for one, rarity in zip(self._positive, self._rarities, strict=True)
                ]
                plain = CandidateMessage(
                    shares, 0.0, True, 1.0, sum(shares), self._scope_index, number
                )
                found.setdefault(number, plain)
        return list(found.values())

    def candidate(self, number: int, worth: float) -> CandidateMessage:
        shares = tuple([share.get(number, 0.0) for share in self._shares])
        named, factor = 0.0, 1.0
        if self._people:
            named_people = self._people.names_in_session(self._scope_index, number)
            named = sum([value for index, value in named_people.items() if not shares[index]])
            factor = 1.0 if named_people else self._people.elsewhere
        extra = named + self._extra.get(number, 0.0)
        worth = (worth + named) * factor
        return CandidateMessage(
            shares, extra, number in self._own, factor, worth, self._scope_index, number
        )


def _is_countable(frequency: int, total: int) -> bool:
    """Whether a word is so rare that neighbouring messages count too."""
    return total <= _SMALL or frequency <= _MOST_SPREAD


def _promising(totals: Share, most: int, *, least: float = 1.0) -> set[int]:
    """Return the `most` best numbers, and all others that score at least `least` times the lowest
    of them."""
    if len(totals) <= most:
        return set(totals)
    limit = least * heapq.nlargest(most, totals.values())[-1]
    return {number for number, worth in totals.items() if worth >= limit}


def _level(levels: list[tuple[float, set[int]]]) -> Share:
    share: Share = {}
    for value, numbers in sorted(levels, key=lambda level: level[0]):
        share.update(dict.fromkeys(numbers, value))
    return share


def _is_must(one: Evidence) -> bool:
    return one.clause.rule == "must"


def _numbers(docs: Docs) -> set[int]:
    return docs if isinstance(docs, set) else set(sets.members(docs))
