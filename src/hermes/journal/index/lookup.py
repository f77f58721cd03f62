"""Finds messages that may match a clause, and sessions of named people, in the index alone."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, assert_never

from hermes.journal.index import docs as sets
from hermes.journal.index.docs import NOTHING, Docs
from hermes.journal.index.file import IndexFile, IndexManifest
from hermes.journal.index.filters import Filters, SegmentScope
from hermes.journal.index.query import Atom, QueryClause
from hermes.journal.index.segment import Segment, blocks, words_with
from hermes.journal.index.terms import alike

_MOST_WORDS = 24
_SHORT_PREFIX = 2
_COMMON_SHARE = 0.1
_FEW = 1_000
_MOST_SOUGHT = 3
_SMALL = 20_000
_MOST_NEAR = 480
_MOST_NEAR_AMONG_MANY = 64
_LEAST_NEAR = 2
_MOST_ALIKE = 24
# How many messages can be read in the time of these: all terms of a leaf, and one word.
_LEAF_ROWS, _WORD_ROWS = 16, 3


def rarity(frequency: int, total: int) -> float:
    """Return how much information a word carries that `frequency` of `total` messages contain."""
    return math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))


class NearWord(NamedTuple):
    """The messages with one near word of a clause, one set per scope."""

    weight: float
    docs: list[Docs]
    frequency: int


class Evidence(NamedTuple):
    """A clause with the messages that may match it."""

    clause: QueryClause
    docs: list[Docs]  # one set per scope; empty when the clause was not looked up
    frequency: int  # the number of the messages, regardless of the filters
    near: tuple[NearWord, ...] = ()  # messages with near words

    def rarity(self, total: int) -> float:
        return rarity(self.frequency, total) * self.clause.weight

    @property
    def is_known(self) -> bool:
        return self.frequency > 0 or bool(self.near)


class Lookup:
    """One state of the index with filters. `total` counts the messages of its scopes, which begin
    with the newest."""

    def __init__(self, file: IndexFile, manifest: IndexManifest, filters: Filters) -> None:
        self.scopes: Sequence[SegmentScope] = filters.scopes(file, manifest.segments)
        self.total = sum(scope.segment.info.docs for scope in self.scopes)
        self._file = file
        self._words = manifest.words
        self._known: dict[bytes, list[bytes]] = {}

    @cached_property
    def _vocabulary(self) -> list[bytes]:
        """The words of the full segments; a search may need them more than once."""
        return list(blocks(self._file, self._words))

    def evidence(
        self, clauses: Sequence[QueryClause], *, enough: int | None = None
    ) -> list[Evidence]:
        """Return evidence for every clause. A single clause may be satisfied by the newest
        messages."""
        parts = {a.text.encode() for c in clauses for a in c.atoms if a.how == "part"}
        known = self._words_with(parts)
        found: list[list[Docs]] = [[] for _ in clauses]
        frequencies = [0] * len(clauses)
        gathered = 0
        for scope in self.scopes:
            inside = _Inside(scope.segment, parts, known)
            for index, clause in enumerate(clauses):
                docs = _holding(clause, scope.segment, inside)
                frequencies[index] += sets.size_of(docs)
                found[index].append(_apply_filters(docs, scope))
            gathered += sets.size_of(found[0][-1])
            if enough is not None and gathered >= enough:
                break
        scopes = self.scopes[: len(found[0])] if clauses else ()
        # Fewer near words when there are more segments, and never just one.
        budget = _MOST_NEAR if self.total <= _SMALL else _MOST_NEAR_AMONG_MANY
        most = budget // max(1, len(scopes) * len(clauses))
        most = most if most >= _LEAST_NEAR else 0
        near = [
            tuple(
                _near_word(atom, weight, scopes)
                for atom, weight in [pair for pair in clause.near if pair[1] < 1][:most]
            )
            for clause in clauses
        ]
        return [Evidence(*one) for one in zip(clauses, found, frequencies, near, strict=True)]

    def similar_words(self, word: str, *, whole: bool) -> list[str]:
        """Return indexed words that an unknown word may stand for; none when it is a part of some,
        unless a `whole` word is wanted."""
        open_segments = (s.segment for s in self.scopes if not s.segment.info.closed)
        fresh = list(chain.from_iterable(segment.words() for segment in open_segments))
        part = word.encode()
        if not whole and (self._words_with([part])[part] or any(part in block for block in fresh)):
            return []
        return alike(word, [*self._vocabulary, *fresh], most=_MOST_ALIKE)

    def _words_with(self, parts: Collection[bytes]) -> Mapping[bytes, Sequence[bytes]]:
        """Return the words of the full segments that contain each part. Every part is searched only
        once."""
        if new := [part for part in parts if part not in self._known]:
            self._known |= words_with(self._vocabulary, new, most=_MOST_WORDS)
        return self._known

    def survey(self, clauses: Sequence[QueryClause], *, enough: int | None) -> list[Evidence]:
        """Look up only the rarest clauses of a long query everywhere. The largest segment shows how
        common the others are; very common ones are dropped."""
        if self.total <= _SMALL:
            found = self.evidence(clauses, enough=enough if len(clauses) == 1 else None)
            distinctive = _distinctive({one.clause: one.frequency for one in found}, _FEW)
            return [one for one in found if one.clause in distinctive]
        sample = max((scope.segment for scope in self.scopes), key=lambda s: s.info.docs)
        counts = {clause: _frequency(clause, sample) for clause in clauses}
        distinctive = _distinctive(counts, max(_FEW, sample.info.docs * _COMMON_SHARE))
        positive = sorted((c for c in distinctive if c.rule == "may"), key=lambda c: counts[c])
        unsought = set(positive[_MOST_SOUGHT:])
        sought = [clause for clause in distinctive if clause not in unsought]
        every = iter(self.evidence(sought, enough=enough if len(distinctive) == 1 else None))
        scale = self.total / sample.info.docs
        return [
            Evidence(clause, [], int(counts[clause] * scale)) if clause in unsought else next(every)
            for clause in distinctive
        ]


def _near_word(atom: Atom, weight: float, scopes: Sequence[SegmentScope]) -> NearWord:
    docs = [_with_atom(atom, scope.segment) for scope in scopes]
    left = [_apply_filters(*pair) for pair in zip(docs, scopes, strict=True)]
    return NearWord(weight, left, sum(map(sets.size_of, docs)))


def _apply_filters(docs: Docs, scope: SegmentScope) -> Docs:
    """Return the messages that pass the filters."""
    if docs and scope.allowed is not None:
        return sets.intersection(docs, scope.allowed)
    return docs


def _frequency(clause: QueryClause, segment: Segment) -> int:
    """Return how many messages match the clause; parts of words count as rare without a look-up."""
    if any(atom.how == "part" for atom in clause.atoms):
        return 0
    return sets.size_of(_holding(clause, segment))


def _distinctive(counts: Mapping[QueryClause, int], most: float) -> list[QueryClause]:
    """Return the clauses without very common words, unless only those are left."""
    rest = [clause for clause, count in counts.items() if clause.rule != "may" or count <= most]
    return rest if any(clause.rule != "not" for clause in rest) else list(counts)


class _Inside:
    """The messages of a segment with words that contain given parts."""

    def __init__(
        self, segment: Segment, parts: Collection[bytes], known: Mapping[bytes, Sequence[bytes]]
    ) -> None:
        self._segment = segment
        self._parts = parts
        self._known = known

    def cost(self, part: bytes) -> int:
        """Return the cost of a look-up, in messages that could be read in the same time."""
        closed = self._segment.info.closed
        return _WORD_ROWS * len(self._known[part]) if closed else self._segment.info.leaves // 2

    def docs(self, part: bytes) -> Docs:
        if self._segment.info.closed:
            return sets.union(map(self._segment.docs, self._known[part]))
        return self._among_all_terms[part]

    @cached_property
    def _among_all_terms(self) -> dict[bytes, Docs]:
        return self._segment.docs_containing(self._parts, most=_MOST_WORDS)


def _holding(clause: QueryClause, segment: Segment, inside: _Inside | None = None) -> Docs:
    """Return the messages with all atoms of the clause, or with another form of its word."""
    together: Docs | None = None
    for atom in clause.atoms:
        if together and _is_cheaper_to_read(atom, clause, sets.size_of(together), segment, inside):
            continue
        docs = _with_atom(atom, segment, inside)
        together = docs if together is None else sets.intersection(together, docs)
        if not together:
            break
    forms = [_with_atom(atom, segment) for atom, weight in clause.near if weight == 1]
    return sets.union([together or NOTHING, *forms]) if forms else together or NOTHING


def _is_cheaper_to_read(
    atom: Atom, clause: QueryClause, count: int, segment: Segment, inside: _Inside | None
) -> bool:
    """Whether it is cheaper to read `count` messages than to look the atom up. Only for required
    clauses: reading the text verifies those."""
    if atom.how == "prefix":
        if len(atom.text) <= _SHORT_PREFIX:
            return True  # nearly everything has it
        spared = _LEAF_ROWS * (len(segment.leaves_of(atom.text.encode())) - 1)
    elif atom.how == "part" and inside is not None:
        spared = inside.cost(atom.text.encode())
    else:
        return False
    return clause.rule == "must" and count <= spared


def _with_atom(atom: Atom, segment: Segment, inside: _Inside | None = None) -> Docs:
    term = atom.text.encode()
    match atom.how:
        case "exact":
            return segment.docs(term)
        case "prefix":
            return segment.docs_starting(term)
        case "part":
            return inside.docs(term) if inside else NOTHING
        case "forms":
            return segment.docs_of_forms(atom.text)
        case _:
            assert_never(atom.how)


_NAMED_IN_SESSION = 0.4
_OTHER_PEOPLE = 0.45
_OTHER_TALK = 0.95
_PER_MENTION = 0.2
_MOST_MENTIONS = 400


class NamedPeople:
    """The names among the clauses; names that occur nowhere do not count."""

    def __init__(
        self, positive: Sequence[Evidence], scopes: Sequence[SegmentScope], total: int
    ) -> None:
        self._docs = {
            index: one.docs
            for index, one in enumerate(positive)
            if one.clause.name and one.docs and one.frequency
        }
        self._worth = {p: _NAMED_IN_SESSION * positive[p].rarity(total) for p in self._docs}
        self._scopes = scopes
        self._begins: dict[int, list[int]] = {}
        self._mentions: dict[tuple[int, int], list[int]] = {}
        self._known: dict[tuple[int, int], Mapping[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._docs)

    def names_in_session(self, scope: int, number: int) -> Mapping[int, float]:
        """Return the names that occur in the session of a message, by the index of their clause,
        with their weight: a name concerns the whole session."""
        begins = self._beginnings(scope)
        session = bisect_right(begins, number)
        if (scope, session) not in self._known:
            first, end = begins[session - 1] if session else 0, begins[session]
            self._known[scope, session] = {
                index: worth
                for index, worth in self._worth.items()
                if (some := self._mention_positions(scope, index))
                and (at := bisect_left(some, first)) < len(some)
                and some[at] < end
            }
        return self._known[scope, session]

    @cached_property
    def elsewhere(self) -> float:
        """The weight of a message in a session without any of the names: lower when these people
        are usually named often, as speakers are."""
        often = max((self._mentions_per_session(index) for index in self._docs), default=1.0)
        return max(_OTHER_PEOPLE, _OTHER_TALK - _PER_MENTION * (often - 1))

    def _mentions_per_session(self, index: int) -> float:
        """Return how often a name occurs per session that contains it, estimated from the first
        ones."""
        mentions = sessions = 0
        for scope in range(len(self._docs[index])):
            some = self._mention_positions(scope, index)[:_MOST_MENTIONS]
            begins = self._beginnings(scope)
            mentions += len(some)
            sessions += len({bisect_right(begins, number) for number in some})
            if mentions >= _MOST_MENTIONS:
                break
        return mentions / max(1, sessions)

    def _mention_positions(self, scope: int, index: int) -> list[int]:
        if (scope, index) not in self._mentions:
            self._mentions[scope, index] = sorted(sets.members(self._docs[index][scope]))
        return self._mentions[scope, index]

    def _beginnings(self, scope: int) -> list[int]:
        if scope not in self._begins:
            self._begins[scope] = sorted(sets.members(self._scopes[scope].begins))
        return self._begins[scope]
