"""Which of the messages that the index finds are worth reading."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from hermes.journal.index import docs as sets
from hermes.journal.index.docs import Docs
from hermes.journal.index.lookup import Evidence

_MOST_COUNTED = 8_192


Candidate = tuple[float, int, int]
"""Worth, scope and number of a message. The best sort first: all but the scope are negative, and
scopes begin with the newest."""


def choose(evidence: Sequence[Evidence], total: int, most: int) -> list[Candidate]:
    """At most so many messages, the most promising first: those with more and rarer clauses, and
    among equals the newest. The scopes of the evidence begin with the newest; `total` is the
    number of messages in them."""
    wanted = sorted(_without_unwanted(evidence), key=lambda e: e.frequency)
    # A word that nobody ever wrote must not hide the messages with the other words.
    wishes = [e for e in wanted if e.clause.rule == "may" and e.frequency]
    musts = [e for e in wanted if e.clause.rule == "must"]
    if not wishes and not musts:
        return []
    counted = _affordable(wishes) if len(wishes) + len(musts) > 1 else 0
    found: set[Candidate] = set()
    if counted:
        found.update(_by_worth(wishes, counted, musts, total, most))
    if musts or not counted:
        found.update(_by_age(musts, wishes, most))
    best: dict[tuple[int, int], Candidate] = {}
    for candidate in heapq.nsmallest(most, found):
        best.setdefault(candidate[1:], candidate)
    return list(best.values())


def _without_unwanted(evidence: Sequence[Evidence]) -> list[Evidence]:
    """A sequence of words is only known to be unwanted where the text shows it."""
    wanted = [e for e in evidence if e.clause.rule != "not" and e.docs]
    for bad in (e for e in evidence if e.clause.rule == "not" and len(e.clause.atoms) == 1):
        wanted = [
            e._replace(docs=[sets.difference(*pair) for pair in zip(e.docs, bad.docs, strict=True)])
            for e in wanted
        ]
    return wanted


def _affordable(wishes: Sequence[Evidence]) -> int:
    """How many of the rarest clauses can be counted message by message."""
    spent = count = 0
    for one in wishes:
        spent += one.frequency
        if spent > _MOST_COUNTED:
            break
        count += 1
    return count


def _by_worth(
    wishes: Sequence[Evidence], counted: int, musts: Sequence[Evidence], total: int, most: int
) -> list[Candidate]:
    """Messages with any of the counted clauses; the common clauses only add to their worth."""
    found: list[Candidate] = []
    for scope in range(len(wishes[0].docs)):
        worth: defaultdict[int, float] = defaultdict(float)
        for one in wishes[:counted]:
            rarity = one.rarity(total)
            for number in sets.members(one.docs[scope]):
                worth[number] -= rarity
        for one in wishes[counted:]:
            rarity = one.rarity(total)
            for number in sets.members(sets.intersection(set(worth), one.docs[scope])):
                worth[number] -= rarity
        held: Docs = set(worth)
        for one in musts:
            held = sets.intersection(held, one.docs[scope])
        found += [(worth[number], scope, -number) for number in sets.members(held)]
    return heapq.nsmallest(most, found)


def _by_age(musts: Sequence[Evidence], wishes: Sequence[Evidence], most: int) -> list[Candidate]:
    """The newest messages with all clauses; then those without the commonest one, and so on."""
    ordered = [*musts, *wishes]
    scopes = [_Together(ordered, scope) for scope in range(len(ordered[0].docs))]
    found: dict[tuple[int, int], Candidate] = {}
    for wanted in range(len(ordered), max(1, len(musts)) - 1, -1):
        for scope, together in enumerate(scopes):
            for number in sets.newest(together.first(wanted)):
                found.setdefault((scope, number), (-wanted, scope, -number))
                if len(found) == most:
                    return list(found.values())
    return list(found.values())


class _Together:
    """The messages of one scope that have the first so many clauses, worked out when needed."""

    def __init__(self, ordered: Sequence[Evidence], scope: int) -> None:
        self._ordered = ordered
        self._scope = scope
        self._known: list[Docs] = []

    def first(self, count: int) -> Docs:
        while len(self._known) < count:
            docs = self._ordered[len(self._known)].docs[self._scope]
            self._known.append(sets.intersection(self._known[-1], docs) if self._known else docs)
        return self._known[count - 1]
