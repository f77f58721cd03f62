"""Scores how well a message answers a query, based on its text and its speaker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from hermes.journal.index.candidates import CandidateMessage
from hermes.journal.index.query import GAP, Asks, QueryClause
from hermes.journal.index.source import ROLES, EventRow, text_of
from hermes.journal.index.terms import continues_word, end_of_word, fold, is_form

_SPEAKS = 1.5
_SPOKEN_OF = 0.8
_CALLED_SPEAKS = 1.5
_CALLS = 0.2
_LEAST_CALLS = 3
_MOSTLY = 0.8
_SHORTEST_NAME = 3

# A speaker written before the text: a name of one or two words.
_BEFORE_WORDS = re.compile(r"(\w+)(?: \w+)?: ")
_GREETING = r"hey|hi|hello|thanks|thank you|bye|dear|wow|yeah|yes|oh|congrats"


class Speakers:
    """The folded names that turn out to belong to speakers."""

    def __init__(self, names: Iterable[str]) -> None:
        # The name between punctuation, or after a greeting, as when a person is addressed.
        before = rf"(?:^|[,.!?]\s*|\b(?:{_GREETING}) )"
        self._calls = {n: re.compile(rf"{before}{re.escape(n)}(?=[,.!?]|$)") for n in names}
        self._callers: dict[str, str] = {}

    def hear(self, messages: Iterable[tuple[str, str]]) -> None:
        """Learn from messages, each with its kind and folded text, who is addressed by name: the
        person that one side of a conversation addresses is the other side."""
        if not self._calls:
            return
        bare = [one for one in messages if not _BEFORE_WORDS.match(one[1])]
        for name, pattern in self._calls.items():
            kinds = [kind for kind, folded in bare if name in folded and pattern.search(folded)]
            named = sum(name in folded for _, folded in bare)
            if len(kinds) < max(_LEAST_CALLS, named / 2):
                continue
            for kind in set(kinds):
                if kinds.count(kind) >= _MOSTLY * len(kinds):
                    self._callers[name] = kind

    def part(self, name: str, kind: str, folded: str, *, is_named: bool) -> float | None:
        """Return the weight of a message for a person's name: highest when that person wrote it.
        None when the speaker is unknown. `is_named` is whether the message contains the name."""
        if before := _BEFORE_WORDS.match(folded):
            is_short_form = len(name) >= _SHORTEST_NAME and before[1].startswith(name)
            if is_short_form or before[1] == name:
                return _SPEAKS
            return _SPOKEN_OF if is_named else None
        if name in self._callers:
            return _CALLS if self._callers[name] == kind else _CALLED_SPEAKS
        return None


LONGEST_JUDGED = 16_384
"""Characters of a message that are scored, unless nothing is found in them."""

_LONG = 300
_SATURATION = 1.2
_LENGTH_MATTERS = 0.4
_TELLING_LENGTH = 120
_OTHER_FORM = 0.8
_PIECES_APART = 0.3
_CLOSE_CHARACTERS = 20
_OTHER_ORDER = 0.7
_PROXIMITY = 0.15
_RECENCY = 0.02
_RECENT_DAYS = 30
_TELLING_WITHIN = 2_000
# What a message with an answer of the wanted kind gains, and how such answers look.
_ANSWERS: dict[Asks, tuple[float, str]] = {
    "time": (
        0.4,
        r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|since|week|weekend|month|year"
        r"|morning|evening|night|spring|summer|autumn|winter|christmas|easter|new year"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
        r"|january|february|march|april|may|june|july|august|september|october|november|december"
        r"|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
        r"|(?:thir|four|fif|six|seven|eigh|nine)teenth|(?:twen|thir)tieth"
        r"|\d+(?:st|nd|rd|th)|(?:19|20)\d\d)\b",
    ),
    "amount": (
        0.25,
        r"\b(?:\d[\d,.]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
        r"|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy"
        r"|eighty|ninety|hundred|thousand|million|once|twice|half|dozen|couple|several|every)\b",
    ),
}
_ROLE_WEIGHTS = {"user": 1.01, "assistant": 1.0, "tool": 0.75}
_LEAST_FOR_NAME = 3.0
# In a record, a line end takes two characters and a control character six.
_STORED_GAP = r"(?:\\[bfnrt]|\\u[0-9a-f]{4}|[\W_]){1,16}"
_MOST_SPANS = 32
_FEW_SPANS = 6

Span = tuple[int, int, float]
"""Start and end of a match in the folded text, and its weight."""


class Message(NamedTuple):
    """A row of the journal with its text, as it is and folded."""

    row: EventRow
    text: str
    folded: str


class ScoredMessage(NamedTuple):
    """A message with its score."""

    score: float
    row: EventRow
    text: str
    found: list[list[Span]]  # the matches of each clause
    rarities: list[float]  # the weights of the clauses
    own: bool = True  # otherwise it has none of the words, but its neighbours do

    def spans(self) -> list[Span]:
        """Return all matches with their full weight."""
        pairs = zip(self.found, self.rarities, strict=True)
        return [(start, end, w * rarity) for some, rarity in pairs for start, end, w in some]


class MessageScorer:
    """Scores messages against clauses, each with its rarity: 0 for a word that all messages
    have."""

    def __init__(
        self,
        clauses: Sequence[QueryClause],
        rarities: Sequence[float],
        newest_at: float,
        asks: Asks = "anything",
    ) -> None:
        positive = [pair for pair in zip(clauses, rarities, strict=True) if pair[0].rule != "not"]
        self._positive = [(clause, rarity, _Matcher(clause)) for clause, rarity in positive]
        self._unwanted = [_Matcher(clause) for clause in clauses if clause.rule == "not"]
        self._musts = [pair for pair in enumerate(c for c, _ in positive) if pair[1].rule == "must"]
        self._rarities = [rarity for _, rarity in positive]
        self._nothing = CandidateMessage([0.0] * len(positive))
        self._newest_at = newest_at
        self._bonus, pattern = _ANSWERS.get(asks, (0.0, ""))
        self._answer = re.compile(pattern)
        self._speakers = Speakers(clause.word for clause, _ in positive if clause.name)
        self._together = [
            re.compile(clause.pattern.replace(GAP, _STORED_GAP).encode())
            for clause in clauses
            if clause.rule == "must" and clause.pattern and clause.pattern.isascii()
        ]

    def hear(self, messages: Sequence[Message]) -> None:
        """Learn the speakers of messages that are scored later."""
        self._speakers.hear((one.row.kind, one.folded) for one in messages)

    def rules_out(self, body: str | bytes) -> bool:
        """Whether the raw bytes of a record show that it lacks a required phrase: much cheaper than
        decoding it. Only works for ASCII."""
        if not self._together or isinstance(body, str) or not body.isascii():
            return False
        low = body.lower()
        return any(pattern.search(low) is None for pattern in self._together)

    def judge(self, message: Message, hint: CandidateMessage | None = None) -> ScoredMessage | None:
        """Score a message; None when a required clause is not matched, or none is at all."""
        row, text, folded = message
        hint = hint or self._nothing
        found = self._find_matches(folded)
        if len(text) > LONGEST_JUDGED and not all(found):
            folded = fold(text)
            found = self._find_matches(folded)
        if not any(found) and not any(hint.shares) and not hint.extra:
            return None
        for index, clause in self._musts:
            # A word may also match in a form that only the index knows.
            if not found[index] and not (clause.near and hint.own):
                return None
        if any(matcher.spans(folded) for matcher in self._unwanted):
            return None
        score = self._score(row, folded, found, hint)
        return ScoredMessage(score, row, text, found, self._rarities, hint.own or any(found))

    def _find_matches(self, folded: str) -> list[list[Span]]:
        return [matcher.spans(folded) for _, _, matcher in self._positive]

    def _score(
        self, row: EventRow, folded: str, found: list[list[Span]], hint: CandidateMessage
    ) -> float:
        length = len(folded)
        relevance = hint.extra
        for (clause, rarity, _), spans, share in zip(
            self._positive, found, hint.shares, strict=True
        ):
            part = None
            if clause.name and hint.factor >= 1:
                # The weight of the speaker for a name that occurs in the session.
                part = self._speakers.part(clause.word, row.kind, folded, is_named=bool(spans))
            if part is not None:
                # In a store with one conversation, names occur everywhere and matter no less.
                relevance += part * max(rarity, _LEAST_FOR_NAME)
            elif not spans:
                relevance += share * _frequency(1, length)
            else:
                best = max([weight for _, _, weight in spans])
                relevance += rarity * best * _frequency(len(spans), length)
        factor = 1 + _PROXIMITY * _closeness(found)
        if self._bonus and self._answer.search(folded, 0, _TELLING_WITHIN):
            factor += self._bonus
        telling = 0.5 + 0.5 * min(1.0, length / _TELLING_LENGTH)
        days = max(0.0, self._newest_at - row.at) / 86_400
        freshness = 1 + _RECENCY / (1 + days / _RECENT_DAYS)
        weight = _ROLE_WEIGHTS[ROLES[row.kind]] * hint.factor
        return relevance * factor * telling * freshness * weight


def message_of(row: EventRow) -> Message:
    text = text_of(row)
    return Message(row, text, fold(text[:LONGEST_JUDGED]))


class _Matcher:
    """Finds a clause in a folded text."""

    def __init__(self, clause: QueryClause) -> None:
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
        """Return the pieces of the clause when each occurs, though not together."""
        found: list[Span] = []
        for piece in self._pieces:
            spans = piece.spans(folded, most=_FEW_SPANS)
            if not spans:
                return []
            found += [(start, end, weight * _PIECES_APART) for start, end, weight in spans]
        return found


def _frequency(count: int, length: int) -> float:
    """Return the value of a number of matches: each further one adds less, and those in a long text
    count less than in a short one."""
    relative = 1 + _LENGTH_MATTERS * max(0, length - _LONG) / _LONG
    return count * (_SATURATION + 1) / (count + _SATURATION * relative)


def _closeness(found: list[list[Span]]) -> float:
    """Return 1 when the clauses occur in the order of the query, near 0 when they are far apart."""
    total = 0.0
    for left, right in pairwise(found):
        best = 0.0
        for (start, end, _), (other_start, other_end, _) in product(
            left[:_FEW_SPANS], right[:_FEW_SPANS]
        ):
            if other_start > start:
                gap, order = other_start - end, 1.0
            else:
                gap, order = start - other_end, _OTHER_ORDER
            near = _CLOSE_CHARACTERS / (_CLOSE_CHARACTERS - 1 + max(1, gap))
            best = max(best, order * near)
        total += best
    return total / (len(found) - 1) if total else 0.0
