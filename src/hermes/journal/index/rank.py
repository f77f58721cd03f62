"""How well a message answers a query, judged on its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hermes.journal.index.forms import is_form
from hermes.journal.index.query import Clause
from hermes.journal.index.texts import ROLES, Row, text_of
from hermes.journal.index.words import continues_word, end_of_word, fold

LONGEST_JUDGED = 16_384
"""Characters of a message that are judged, unless nothing is found in them."""

_TYPICAL_LENGTH = 300
_SATURATION = 1.2
_LENGTH_MATTERS = 0.4
_OTHER_FORM = 0.8
_PIECES_APART = 0.3
_CLOSE_CHARACTERS = 20
_OTHER_ORDER = 0.7
_PROXIMITY = 0.5
_RECENCY = 0.08
_RECENT_DAYS = 30
_ROLE_WEIGHTS = {"user": 1.1, "assistant": 1.0, "tool": 0.75}
_MOST_SPANS = 32
_FEW_SPANS = 6


Span = tuple[int, int, float]
"""Where a match begins and ends in the folded text, and what it is worth."""


class Message(NamedTuple):
    """A row of the journal with its words, as they are and folded."""

    row: Row
    text: str
    folded: str


class Judged(NamedTuple):
    """`found` are the matches of each clause, `rarities` what the clauses are worth."""

    score: float
    row: Row
    text: str
    found: list[list[Span]]
    rarities: list[float]

    def spans(self) -> list[Span]:
        """All matches with the whole of their worth."""
        pairs = zip(self.found, self.rarities, strict=True)
        return [(start, end, w * rarity) for some, rarity in pairs for start, end, w in some]


class Judge:
    """Scores messages against clauses, each with its rarity: 0 for a word that all have."""

    def __init__(
        self, clauses: Sequence[Clause], rarities: Sequence[float], newest_at: float
    ) -> None:
        wishes = [pair for pair in zip(clauses, rarities, strict=True) if pair[0].rule != "not"]
        self._wishes = [(clause.rule, rarity, _Matcher(clause)) for clause, rarity in wishes]
        self._unwanted = [_Matcher(clause) for clause in clauses if clause.rule == "not"]
        self._rarities = [rarity for _, rarity in wishes]
        self._total = sum(self._rarities)
        self._newest_at = newest_at

    def judge(self, message: Message) -> Judged | None:
        """None when a clause that must be fulfilled is not, or none is at all."""
        row, text, folded = message
        found = [matcher.spans(folded) for _, _, matcher in self._wishes]
        if len(text) > LONGEST_JUDGED and not all(found):
            folded = fold(text)
            found = [matcher.spans(folded) for _, _, matcher in self._wishes]
        if not self._acceptable(folded, found):
            return None
        return Judged(self._score(row, len(folded), found), row, text, found, self._rarities)

    def _acceptable(self, folded: str, found: list[list[Span]]) -> bool:
        if not any(found):
            return False
        wishes = zip(self._wishes, found, strict=True)
        if any(rule == "must" and not spans for (rule, _, _), spans in wishes):
            return False
        return not any(matcher.spans(folded) for matcher in self._unwanted)

    def _score(self, row: Row, length: int, found: list[list[Span]]) -> float:
        relevance = fulfilled = 0.0
        for (_, rarity, _), spans in zip(self._wishes, found, strict=True):
            if spans:
                best = max([weight for _, _, weight in spans])
                relevance += rarity * best * _frequency(len(spans), length)
                fulfilled += rarity * best
        coverage = 0.4 + 0.6 * fulfilled / self._total
        proximity = 1 + _PROXIMITY * _closeness(found)
        days = max(0.0, self._newest_at - row.at) / 86_400
        freshness = 1 + _RECENCY / (1 + days / _RECENT_DAYS)
        return relevance * coverage * proximity * freshness * _ROLE_WEIGHTS[ROLES[row.kind]]


def message_of(row: Row) -> Message:
    text = text_of(row)
    return Message(row, text, fold(text[:LONGEST_JUDGED]))


class _Matcher:
    """Finds a clause in a folded text."""

    def __init__(self, clause: Clause) -> None:
        self._clause = clause
        self._pattern = re.compile(clause.pattern) if clause.pattern else None
        self._pieces = [_Matcher(piece) for piece in clause.pieces if clause.rule != "must"]

    def spans(self, folded: str, most: int = _MOST_SPANS) -> list[Span]:
        found: list[Span] = []
        clause = self._clause
        for start, end in self._places(folded):
            cut_left, cut_right = continues_word(folded, start - 1), continues_word(folded, end)
            if (cut_left and clause.left) or (cut_right and clause.right):
                continue
            weight = clause.inside_weight if cut_left or cut_right else 1.0
            if not clause.pattern and folded[start:end] != clause.word:
                if clause.stem and not is_form(clause.stem, folded[start:end]):
                    continue
                weight *= _OTHER_FORM
            found.append((start, end, weight))
            if len(found) == most:
                break
        return found or self._apart(folded)

    def _places(self, folded: str) -> Iterator[tuple[int, int]]:
        if self._pattern:
            yield from (match.span() for match in self._pattern.finditer(folded))
            return
        clause = self._clause
        wanted = clause.stem or clause.word
        open_end = clause.stem or (clause.left and not clause.right)
        start = folded.find(wanted)
        while start >= 0:
            end = start + len(wanted)
            end = end_of_word(folded, end) if open_end else end
            yield start, end
            start = folded.find(wanted, end)

    def _apart(self, folded: str) -> list[Span]:
        """The pieces of the clause when each of them is there, though not together."""
        found: list[Span] = []
        for piece in self._pieces:
            spans = piece.spans(folded, most=_FEW_SPANS)
            if not spans:
                return []
            found += [(start, end, weight * _PIECES_APART) for start, end, weight in spans]
        return found


def _frequency(count: int, length: int) -> float:
    """Each further mention adds less, and mentions in a long text less than in a short one."""
    relative = 1 - _LENGTH_MATTERS + _LENGTH_MATTERS * length / _TYPICAL_LENGTH
    return count * (_SATURATION + 1) / (count + _SATURATION * relative)


def _closeness(found: list[list[Span]]) -> float:
    """1 when the clauses follow each other as in the query, near 0 when they are far apart."""
    if len(found) < 2:
        return 0.0
    near = [_nearness(left, right) for left, right in pairwise(found)]
    return sum(near) / len(near)


def _nearness(left: list[Span], right: list[Span]) -> float:
    best = 0.0
    for start, end, _ in left[:_FEW_SPANS]:
        for other_start, other_end, _ in right[:_FEW_SPANS]:
            if other_start > start:
                gap, order = other_start - end, 1.0
            else:
                gap, order = start - other_end, _OTHER_ORDER
            near = _CLOSE_CHARACTERS / (_CLOSE_CHARACTERS - 1 + max(1, gap))
            best = max(best, order * near)
    return best
