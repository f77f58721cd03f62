"""Search over the journal, with an index that updates and repairs itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from hermes.codec.values import Value
from hermes.core.world import Clock, SystemClock
from hermes.journal.index.answer import SearchRequest, SimilarityModel
from hermes.journal.index.filters import Filters
from hermes.journal.index.keeper import IndexAccess, Outcome
from hermes.journal.index.question import parse_question
from hermes.journal.index.rank import ScoredMessage
from hermes.journal.index.sessions import diversify
from hermes.journal.index.snippet import excerpt, snippet
from hermes.journal.index.source import EventSource
from hermes.journal.index.texts import ROLES, Role
from hermes.journal.index.upkeep import Sizes

T = TypeVar("T")

_POLL_SECONDS = 0.02
_MOST_REPAIRS = 3
_MOST_HITS = 1_000
_LEAST_RANKED = 64
_USUAL_HITS = 10
_PASSAGE_CHARACTERS = 400


class SearchHit(Value):
    """A message that was found. `n` is its record number in the session. The snippet marks matches
    with `>>>` and `<<<`. Scores are comparable within one search only."""

    session_id: str
    n: int
    event_id: int
    at: float
    role: Role
    snippet: str
    score: float


class RecallPassage(Value):
    """A message that may hold an answer, on one line; of a long one the best excerpt. One that is
    not `own` has none of the words, but its neighbours do."""

    session_id: str
    n: int
    event_id: int
    at: float
    role: Role
    text: str
    score: float
    own: bool


class SearchIndex:
    """Finds messages by their words. The file at `path` can be deleted at any time. A search first
    indexes new messages for at most `patience_seconds`, then answers with what is indexed so far.
    When the file cannot be used at all, the journal itself is searched."""

    def __init__(
        self,
        path: Path,
        source: EventSource,
        *,
        clock: Clock | None = None,
        patience_seconds: float = 60.0,
        sizes: Sizes | None = None,
        likeness: SimilarityModel | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._source = source
        self._keeper = IndexAccess(path, source, self._clock, sizes or Sizes(), likeness)
        self._patience_seconds = patience_seconds
        # The source serves one thread at a time, and a cancelled search leaves its thread behind.
        self._turn = threading.Lock()

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        sessions: Collection[str] | None = None,
        exclude: Collection[str] = (),
        roles: Collection[Role] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[SearchHit, ...]:
        """The best messages, best first, from several sessions where possible. Any string is a
        query (see `question.understood`). Times are seconds since 1970: `since` inclusive, `until`
        exclusive."""
        first = max(0, offset)
        count = min(first + limit, _MOST_HITS)
        if count <= first:
            return ()
        filters = _filters(sessions, exclude, roles, since, until)
        found = await self._find(query, filters, count, beside=False)
        return tuple(map(_hit, diversify(found)[first:count]))

    async def recall(
        self,
        query: str,
        *,
        limit: int = 96,
        sessions: Collection[str] | None = None,
        exclude: Collection[str] = (),
        roles: Collection[Role] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[RecallPassage, ...]:
        """Messages that may hold the answer to a question, best first: those with its words and
        their neighbours."""
        filters = _filters(sessions, exclude, roles, since, until)
        found = await self._find(query, filters, min(limit, _MOST_HITS), beside=True)
        return tuple(map(_passage, found[: max(0, limit)]))

    async def _find(
        self, query: str, filters: Filters, enough: int, *, beside: bool
    ) -> list[ScoredMessage]:
        question = parse_question(query, self._clock.now())
        if not question.clauses:
            return []
        request = SearchRequest(
            question=question,
            filters=filters,
            count=max(enough, _LEAST_RANKED),
            enough=min(enough, _USUAL_HITS) if beside else enough,
            query=query,
            beside=beside,
        )
        return await self._retry(lambda patient: self._keeper.find(request, patient=patient), [])

    async def catch_up(self) -> None:
        """Index everything new and merge what is due; for idle times."""
        await self._retry(lambda patient: self._keeper.caught_up(patient=patient), None)

    async def rebuild(self) -> None:
        """Rebuild the file from the journal."""
        await self._retry(lambda patient: self._keeper.rebuild(patient=patient), None)
        await self.catch_up()

    async def forget(self, *, events: Collection[int] = (), sessions: Collection[str] = ()) -> None:
        """Remove the text of these messages from the file, after the journal has lost them.
        JournalError when that is not possible."""
        ids, names = set(events), set(sessions)
        await self._retry(lambda patient: self._keeper.forget(ids, names, patient=patient), None)

    async def check(self) -> list[str]:
        """Check the whole file; returns the problems. A missing file is none."""
        return await asyncio.to_thread(self._keeper.problems)

    async def _retry(self, attempt: Callable[[bool], T | Outcome], nothing: T) -> T:
        """Try in a worker thread until it is done. The attempt is told whether there is time for
        another one."""
        deadline = self._clock.monotonic() + self._patience_seconds
        repairs = 0
        while True:
            patient = self._clock.monotonic() < deadline and repairs < _MOST_REPAIRS
            outcome = await asyncio.to_thread(self._in_turn, attempt, patient)
            match outcome:
                case "done":
                    return nothing
                case "busy":
                    await self._clock.sleep(_POLL_SECONDS)
                case "mended":
                    repairs += 1
                case "more":
                    pass
                case _:
                    return outcome

    def _in_turn(self, attempt: Callable[[bool], T], patient: bool) -> T:
        with self._turn, closing(self._source):
            return attempt(patient)


def _hit(judged: ScoredMessage) -> SearchHit:
    row = judged.row
    return SearchHit(
        session_id=row.session_id,
        n=row.n,
        event_id=row.id,
        at=row.at,
        role=ROLES[row.kind],
        snippet=snippet(judged.text, judged.spans()),
        score=round(judged.score, 4),
    )


def _passage(judged: ScoredMessage) -> RecallPassage:
    row = judged.row
    return RecallPassage(
        session_id=row.session_id,
        n=row.n,
        event_id=row.id,
        at=row.at,
        role=ROLES[row.kind],
        text=excerpt(judged.text, judged.spans(), _PASSAGE_CHARACTERS),
        score=round(judged.score, 4),
        own=judged.own,
    )


def _filters(
    sessions: Collection[str] | None,
    exclude: Collection[str],
    roles: Collection[Role] | None,
    since: float | None,
    until: float | None,
) -> Filters:
    return Filters(
        sessions=None if sessions is None else frozenset(sessions),
        exclude=frozenset(exclude),
        roles=None if roles is None else frozenset(roles),
        since=since,
        until=until,
    )
