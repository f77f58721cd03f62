"""Answers a query: looks clauses up in the index, reads candidates from the journal, and judges
them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

from hermes.codec.values import Value, replace
from hermes.journal.index.candidates import choose
from hermes.journal.index.file import IndexFile
from hermes.journal.index.filters import Filters
from hermes.journal.index.lookup import Evidence, Lookup
from hermes.journal.index.query import (
    QueryClause,
    Question,
    is_spelt_wrong,
    loosen,
    respell,
    soften,
)
from hermes.journal.index.rank import Message, MessageScorer, ScoredMessage, message_of
from hermes.journal.index.results import with_sessions
from hermes.journal.index.source import EventRow, JournalFile

_READ_AT_ONCE = 64
_MOST_READ = 768
_ENOUGH_ALIKE = 384
_FETCHED_AT_ONCE = 64
_MOST_CHARACTERS = 3_000_000
_MOST_LOOSENED = 3
_MOST_RESPELT = 2
_FEW_CLAUSES = 2
_SHORTEST_LOOSENED = 4
_SCANNED_AT_ONCE = 512


class SearchRequest(Value):
    """What a search asks of the index."""

    question: Question
    filters: Filters
    count: int  # the number of messages wanted, best first
    enough: int  # the number that makes a looser search unnecessary
    beside: bool  # whether messages count that are relevant only because of their neighbours


def answer(file: IndexFile, source: JournalFile, request: SearchRequest) -> list[ScoredMessage]:
    """Return the best messages, best first."""
    with file.reading():
        lookup = Lookup(file, file.manifest(), request.filters)
        return _Search(lookup, source, request).run() if lookup.scopes else []


def scan(
    source: JournalFile, request: SearchRequest, *, after_id: int, most: int | None = None
) -> list[ScoredMessage]:
    """Search the messages after an event without an index: slow, but needs no file."""
    clauses = [wide for one in request.question.clauses for wide in loosen(one) or [one]]
    judge = MessageScorer(clauses, [1.0] * len(clauses), newest_at=0.0)

    def rows() -> Iterator[EventRow]:
        last_id = after_id
        while some := source.rows(last_id, _SCANNED_AT_ONCE):
            yield from some
            last_id = some[-1].id

    allowed = filter(request.filters.allows, islice(rows(), most))
    judged = filter(None, map(judge.judge, map(message_of, allowed)))
    return heapq.nsmallest(request.count, judged, key=order)


def order(judged: ScoredMessage) -> tuple[float, int]:
    """Return a sort key: best first; of equals, the newest first."""
    return -judged.score, -judged.row.id


class _Search:
    """One search. What its first attempt read is reused by the second."""

    def __init__(self, lookup: Lookup, source: JournalFile, request: SearchRequest) -> None:
        self._lookup = lookup
        self._source = source
        self._request = request
        self._messages: dict[int, Message] = {}
        self._characters = 0
        self._spare = _MOST_READ

    def run(self) -> list[ScoredMessage]:
        """Search, twice if necessary: a required clause that matches nothing is optional the second
        time."""
        clauses = self._request.question.clauses
        found = self._with_all(clauses)
        if not found and any(clause.rule == "must" for clause in clauses):
            found = self._with_all(soften(clauses))
        return found

    def _with_all(self, clauses: tuple[QueryClause, ...]) -> list[ScoredMessage]:
        """Search for all clauses. Parts of words count for words that no message has, and for a
        single rare word. A single clause of several words means these words together, as long as a
        message has them."""
        if len(clauses) == 1 and len(clauses[0].atoms) > 1:
            together = replace(clauses[0], rule="must")
            found = self._judge_evidence(self._evidence([together]))
            clauses = tuple(loosen(clauses[0])) or clauses
            if found:
                return found
        evidence = self._evidence(clauses)
        unknown = [one.clause for one in evidence if not one.is_known]
        if meant := self._correct_spelling(unknown, whole=len(evidence) > _FEW_CLAUSES):
            clauses = tuple(meant.get(clause, clause) for clause in clauses)
            evidence = self._evidence(clauses)
            unknown = [one.clause for one in evidence if not one.is_known]
        found = self._with_parts(evidence, unknown)
        if found or not unknown or any(clause.rule == "must" for clause in unknown):
            return found
        # A word that no message has must not hide the messages with the other words.
        written = [clause for clause in clauses if clause not in unknown]
        sought = any(clause.rule != "not" for clause in written)
        return self._judge_evidence(self._evidence(written)) if sought else []

    def _correct_spelling(
        self, unknown: Sequence[QueryClause], *, whole: bool
    ) -> dict[QueryClause, QueryClause]:
        """Replace words that no message has by similarly spelled words of the index. Outside of
        questions, a few words are also looked up as parts of words."""
        wrong = [clause for clause in unknown if is_spelt_wrong(clause)][:_MOST_RESPELT]
        return {
            clause: guess
            for clause in wrong
            if (guess := respell(clause, self._lookup.similar_words(clause.word, whole=whole)))
            != clause
        }

    def _with_parts(
        self, evidence: Sequence[Evidence], unknown: list[QueryClause]
    ) -> list[ScoredMessage]:
        """Search with parts of words for unknown clauses. A question has enough other words without
        these guesses."""
        guessed = unknown if len(evidence) <= _FEW_CLAUSES or len(unknown) == len(evidence) else []
        if wide := _widen(evidence, guessed):
            return self._judge_evidence(self._evidence(wide))
        found = self._judge_evidence(evidence)
        alone = len(evidence) == 1 and len(evidence[0].clause.atoms) == 1
        if (alone and len(found) < self._request.enough) or not found:
            rarest = min(evidence, key=lambda one: one.frequency)
            if wide := _widen(evidence, [rarest.clause]):
                return _append_new(
                    found, self._judge_evidence(self._evidence(wide)), self._request.count
                )
        return found

    def _evidence(self, clauses: Sequence[QueryClause]) -> list[Evidence]:
        """Return the evidence for the clauses; a single optional clause is satisfied by the newest
        messages."""
        most = _MOST_READ if _is_strict(clauses) else _ENOUGH_ALIKE
        return self._lookup.survey(clauses, enough=max(most, self._request.count))

    def _judge_evidence(self, evidence: Sequence[Evidence]) -> list[ScoredMessage]:
        total, count = self._lookup.total, self._request.count
        question = self._request.question
        newest_at = max(scope.segment.info.newest for scope in self._lookup.scopes)
        rarities = [one.rarity(total) for one in evidence]
        judge = MessageScorer([one.clause for one in evidence], rarities, newest_at, question.asks)
        # Words of a phrase often only occur in the same message, so more messages are read then.
        strict = _is_strict([one.clause for one in evidence])
        most = max(count, self._spare if strict else _READ_AT_ONCE * (1 + (len(evidence) == 1)))
        candidates = iter(choose(evidence, self._lookup.scopes, total, most, question.period))
        found: list[ScoredMessage] = []
        while some := list(islice(candidates, _READ_AT_ONCE)):
            hints = {self._lookup.scopes[one.scope].segment.id_of(one.number): one for one in some}
            self._spare -= len(hints) if strict else 0
            read = list(self._read(list(hints), judge))
            judge.hear(read)
            found += filter(None, (judge.judge(one, hints[one.row.id]) for one in read))
            enough = self._request.enough if strict else count
            if len(found) >= enough or self._characters > _MOST_CHARACTERS:
                break
        wanted = [one for one in with_sessions(found) if one.own or self._request.beside]
        return heapq.nsmallest(count, wanted, key=order)

    def _read(self, ids: Sequence[int], judge: MessageScorer) -> Iterator[Message]:
        """Yield the messages that still exist, pass the filters and can be read in time, without
        those that the judge would reject anyway."""
        for start in range(0, len(ids), _FETCHED_AT_ONCE):
            some = ids[start : start + _FETCHED_AT_ONCE]
            for row in self._source.fetch([id for id in some if id not in self._messages]):
                if self._request.filters.allows(row) and not judge.rules_out(row.body):
                    self._messages[row.id] = message_of(row)
                    self._characters += len(row.body)
            yield from (self._messages[id] for id in some if id in self._messages)
            if self._characters > _MOST_CHARACTERS:
                return


def _is_strict(clauses: Sequence[QueryClause]) -> bool:
    return any(clause.rule == "must" and len(clause.atoms) > 1 for clause in clauses)


def _append_new(
    found: list[ScoredMessage], more: list[ScoredMessage], count: int
) -> list[ScoredMessage]:
    """Return the first results, followed by those of the looser search."""
    known = {one.row.id for one in found}
    new = [one for one in more if one.row.id not in known]
    if found and new:
        scale = found[-1].score / max(found[-1].score, new[0].score)
        new = [one._replace(score=one.score * scale) for one in new]
    return [*found, *new][:count]


def _widen(evidence: Sequence[Evidence], chosen: Sequence[QueryClause]) -> list[QueryClause]:
    """Return the clauses with the selected ones loosened; empty when none can be."""
    shortest = 1 if len(evidence) == 1 else _SHORTEST_LOOSENED
    loose = {c: loosen(c) for c in chosen[:_MOST_LOOSENED] if len(c.word) >= shortest}
    if not any(loose.values()):
        return []
    return [wide for one in evidence for wide in loose.get(one.clause) or [one.clause]]
