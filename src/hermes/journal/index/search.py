"""Search over the journal, with an index that updates and repairs itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, TypeVar

from hermes.codec.values import Value
from hermes.core.errors import JournalError
from hermes.core.world import Clock, SystemClock
from hermes.journal.index import upkeep
from hermes.journal.index.answer import SearchRequest, answer, order, scan
from hermes.journal.index.file import IndexDamaged, IndexFile, IndexUnavailable, create, discard
from hermes.journal.index.filters import NO_FILTERS, Filters
from hermes.journal.index.query import parse_question
from hermes.journal.index.rank import ScoredMessage
from hermes.journal.index.results import diversify, excerpt, snippet
from hermes.journal.index.source import ROLES, JournalFile, Role
from hermes.journal.index.upkeep import Progress, Sizes, problems

log = logging.getLogger(__name__)

T = TypeVar("T")

_WARNING_SECONDS = 60.0
_POLL_SECONDS = 0.02
_MOST_REPAIRS = 3
_MOST_SCANNED = 5_000
_MOST_HITS = 1_000
_LEAST_RANKED = 64
_USUAL_HITS = 10
_PASSAGE_CHARACTERS = 400

Outcome = Progress | Literal["mended"]
"""How an attempt without a result ended. "mended" means that the file was damaged and is
removed."""


class FoundMessage(Value):
    """A message that a search found."""

    session_id: str
    n: int  # the record number in the session
    event_id: int
    at: float
    role: Role
    score: float  # comparable within one search only


class MessageHit(FoundMessage):
    """A found message with a snippet, which marks matches with `>>>` and `<<<`."""

    snippet: str


class RecallPassage(FoundMessage):
    """A message that may hold an answer, on one line; of a long one the best excerpt."""

    text: str
    own: bool  # otherwise it has none of the words, but its neighbours do


class SearchIndex:
    """Finds messages by their words. The file at `path` can be deleted at any time. A search first
    indexes new messages for at most `patience_seconds`, then answers with what is indexed so far.
    When the file cannot be used at all, the journal itself is searched."""

    def __init__(
        self,
        path: Path,
        source: JournalFile,
        *,
        clock: Clock | None = None,
        patience_seconds: float = 60.0,
        sizes: Sizes | None = None,
    ) -> None:
        self._path = path
        self._source = source
        self._clock = clock or SystemClock()
        self._sizes = sizes or Sizes()
        self._patience_seconds = patience_seconds
        # The source serves one thread at a time, and a cancelled search leaves its thread behind.
        self._turn = threading.Lock()
        self._warned_at = float("-inf")

    async def search(
        self, query: str, filters: Filters = NO_FILTERS, *, limit: int = 10
    ) -> tuple[MessageHit, ...]:
        """Return the best messages, best first, from several sessions where possible. Any string is
        a query (see `parse_question`)."""
        count = min(limit, _MOST_HITS)
        if count <= 0:
            return ()
        found = await self._find(query, filters, count, beside=False)
        return tuple(
            MessageHit(**_facts(one), snippet=snippet(one.text, one.spans()))
            for one in diversify(found)[:count]
        )

    async def recall(
        self, query: str, filters: Filters = NO_FILTERS, *, limit: int = 96
    ) -> tuple[RecallPassage, ...]:
        """Return messages that may hold the answer to a question, best first: those with its words
        and their neighbours."""
        found = await self._find(query, filters, min(limit, _MOST_HITS), beside=True)
        return tuple(
            RecallPassage(
                **_facts(one),
                text=excerpt(one.text, one.spans(), _PASSAGE_CHARACTERS),
                own=one.own,
            )
            for one in found[: max(0, limit)]
        )

    async def catch_up(self) -> None:
        """Index everything new and merge what is due; for idle times."""
        await self._retry(self._try_catch_up, None)

    async def rebuild(self) -> None:
        """Rebuild the file from the journal."""
        await self._retry(self._try_discard, None)
        await self.catch_up()

    async def forget(self, *, sessions: Collection[str]) -> None:
        """Remove the text of these sessions, which were deleted from the journal, from the file.
        Raises JournalError when that is not possible."""
        await self._retry(lambda patient: self._try_forget(sessions, patient), None)

    async def check(self) -> list[str]:
        """Check the whole file; returns the problems. A missing file is none."""

        def check() -> list[str]:
            try:
                with closing(IndexFile(self._path)) as file:
                    return problems(file)
            except (IndexDamaged, IndexUnavailable) as error:
                return [f"the search index cannot be opened: {error}"]

        return await asyncio.to_thread(check) if self._path.exists() else []

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
            beside=beside,
        )
        return await self._retry(lambda patient: self._try_find(request, patient), [])

    async def _retry(self, attempt: Callable[[bool], T | Outcome], nothing: T) -> T:
        """Try in a worker thread until it is done. The attempt is told whether there is time for
        another one."""
        deadline = self._clock.monotonic() + self._patience_seconds
        repairs = 0

        def run(patient: bool) -> T | Outcome:
            with self._turn, closing(self._source):
                return attempt(patient)

        while True:
            patient = self._clock.monotonic() < deadline and repairs < _MOST_REPAIRS
            outcome = await asyncio.to_thread(run, patient)
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

    def _try_find(self, request: SearchRequest, patient: bool) -> list[ScoredMessage] | Outcome:
        """Return the best messages; an impatient caller gets them from what is indexed so far."""
        if not self._source.exists():
            return []
        try:
            return self._with_file(lambda file: self._answer(file, request, patient), patient)
        except (IndexDamaged, IndexUnavailable) as error:
            self._warn("the search index cannot be used; searching the journal itself", error)
            return scan(self._source, request, after_id=0)

    def _answer(
        self, file: IndexFile, request: SearchRequest, patient: bool
    ) -> list[ScoredMessage] | Outcome:
        progress: Progress | None = None
        try:
            progress = upkeep.advance(file, self._source, self._sizes, thorough=False)
        except IndexUnavailable as error:
            self._warn("new messages cannot be written to the search index", error)
        if progress in ("more", "busy") and patient:
            return progress
        found = answer(file, self._source, request)
        if progress == "more":
            self._warn("the search index is not complete yet", None)
        elif progress != "done":
            seen = file.manifest().seen
            after_id, most = seen.id if seen else 0, _MOST_SCANNED if progress == "busy" else None
            found += scan(self._source, request, after_id=after_id, most=most)
        return sorted(found, key=order)[: request.count]

    def _try_catch_up(self, patient: bool) -> Outcome:
        if not self._source.exists():
            return "done"
        try:
            outcome = self._with_file(
                lambda file: upkeep.advance(file, self._source, self._sizes, thorough=True), patient
            )
        except (IndexDamaged, IndexUnavailable) as error:
            self._warn("the search index cannot be updated", error)
            return "done"
        return outcome if patient or outcome == "more" else "done"

    def _try_forget(self, sessions: Collection[str], patient: bool) -> Outcome:
        """Forget messages. An impatient caller removes the whole file, which forgets them too."""
        if not self._path.exists():
            return "done"
        try:
            if patient:
                return self._with_file(
                    lambda file: upkeep.forget(file, self._source, sessions), patient
                )
            discard(self._path)
            return "done"
        except IndexUnavailable as error:
            raise JournalError(
                f"Deleted messages may still be in the search index ({error}); "
                f"delete {self._path}; it is rebuilt automatically."
            ) from error

    def _try_discard(self, patient: bool) -> Outcome:
        with upkeep.sole_writer(self._path) as mine:
            if patient and not mine:
                return "busy"
            discard(self._path)
        return "done"

    def _with_file(self, work: Callable[[IndexFile], T], patient: bool) -> T | Outcome:
        """Run work with the open file. If the file is damaged, repair it for a patient caller, and
        report the damage to any other."""
        create(self._path)
        identity = _identity(self._path)
        try:
            with closing(IndexFile(self._path)) as file:
                return work(file)
        except IndexDamaged as damage:
            if not patient:
                raise
            reason = str(damage)
        with upkeep.sole_writer(self._path) as mine:
            if not mine:
                return "busy"
            if _identity(self._path) == identity:
                discard(self._path)
                log.warning(
                    "the search index was damaged and is rebuilt",
                    extra={"path": str(self._path), "reason": reason},
                )
        return "mended"

    def _warn(self, message: str, error: Exception | None) -> None:
        """Log at most one warning per minute, because searches may be frequent."""
        now = self._clock.monotonic()
        if now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            log.warning(message, extra={"path": str(self._path), "reason": str(error)})


def _identity(path: Path) -> int:
    """Return a number that identifies the file, as opposed to one that replaced it; 0 when there is
    none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _facts(found: ScoredMessage) -> dict[str, Any]:
    row = found.row
    return {
        "session_id": row.session_id,
        "n": row.n,
        "event_id": row.id,
        "at": row.at,
        "role": ROLES[row.kind],
        "score": round(found.score, 4),
    }
