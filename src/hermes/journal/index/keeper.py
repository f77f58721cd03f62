"""The index file in one thread: opened, updated, repaired or discarded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeVar

from hermes.core.errors import JournalError
from hermes.core.world import Clock
from hermes.journal.index import upkeep
from hermes.journal.index.answer import SearchRequest, SimilarityModel, answer, order, scan
from hermes.journal.index.checkup import problems
from hermes.journal.index.file import IndexDamaged, IndexFile, IndexUnavailable, create, discard
from hermes.journal.index.rank import ScoredMessage
from hermes.journal.index.source import EventSource
from hermes.journal.index.upkeep import Progress, Sizes

log = logging.getLogger(__name__)

Found = TypeVar("Found")

_WARNING_SECONDS = 60.0
_MOST_SCANNED = 5_000

Outcome = Progress | Literal["mended"]
"""How an attempt without a result ended. "mended" means that the file was damaged and is
removed."""


class IndexAccess:
    """Each method is one attempt. A patient caller tries again unless the outcome is "done"."""

    def __init__(
        self,
        path: Path,
        source: EventSource,
        clock: Clock,
        sizes: Sizes,
        likeness: SimilarityModel | None = None,
    ) -> None:
        self._likeness = likeness
        self._path = path
        self._source = source
        self._clock = clock
        self._sizes = sizes
        self._warned_at: float | None = None

    def find(self, request: SearchRequest, *, patient: bool) -> list[ScoredMessage] | Outcome:
        """The best messages; an impatient caller gets them from what is indexed so far."""
        if not self._source.exists():
            return []
        try:
            return self._with_file(lambda file: self._answer(file, request, patient), patient)
        except (IndexDamaged, IndexUnavailable) as error:
            self._warn("the search index cannot be used; searching the journal itself", error)
            return scan(self._source, request, after_id=0)

    def caught_up(self, *, patient: bool) -> Outcome:
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

    def forget(self, ids: set[int], sessions: Collection[str], *, patient: bool) -> Outcome:
        """An impatient caller removes the whole file, which forgets the messages too."""
        if not self._path.exists():
            return "done"
        try:
            if not patient:
                discard(self._path)
                return "done"
            return self._with_file(
                lambda file: upkeep.forget(file, self._source, ids, sessions), patient
            )
        except IndexUnavailable as error:
            raise JournalError(
                f"Deleted messages may still be in the search index ({error}); "
                f"delete {self._path}; it is rebuilt automatically."
            ) from error

    def rebuild(self, *, patient: bool) -> Outcome:
        with upkeep.sole_writer(upkeep.lock_path(self._path)) as mine:
            if patient and not mine:
                return "busy"
            discard(self._path)
        return "done"

    def problems(self) -> list[str]:
        if not self._path.exists():
            return []
        try:
            with closing(IndexFile(self._path)) as file:
                return problems(file)
        except (IndexDamaged, IndexUnavailable) as error:
            return [f"the search index cannot be opened: {error}"]

    def _answer(
        self, file: IndexFile, request: SearchRequest, patient: bool
    ) -> list[ScoredMessage] | Outcome:
        try:
            progress: Outcome | None = upkeep.advance(
                file, self._source, self._sizes, thorough=False
            )
        except IndexUnavailable as error:
            self._warn("new messages cannot be written to the search index", error)
            progress = None
        if progress in ("more", "busy") and patient:
            return progress
        found = answer(file, self._source, request, self._likeness)
        if progress == "more":
            self._warn("the search index is not complete yet", None)
        elif progress != "done":
            seen = file.manifest().seen
            after_id, most = seen.id if seen else 0, _MOST_SCANNED if progress == "busy" else None
            found += scan(self._source, request, after_id=after_id, most=most)
        return sorted(found, key=order)[: request.count]

    def _with_file(self, work: Callable[[IndexFile], Found], patient: bool) -> Found | Outcome:
        """Damage is repaired for a patient caller and reported to any other."""
        create(self._path)
        identity = _identity(self._path)
        try:
            with closing(IndexFile(self._path)) as file:
                return work(file)
        except IndexDamaged as damage:
            if not patient:
                raise
            return self._repair(identity, damage)

    def _repair(self, identity: int, damage: IndexDamaged) -> Outcome:
        with upkeep.sole_writer(upkeep.lock_path(self._path)) as mine:
            if not mine:
                return "busy"
            if _identity(self._path) == identity:
                discard(self._path)
                log.warning(
                    "the search index was damaged and is rebuilt",
                    extra={"path": str(self._path), "reason": str(damage)},
                )
        return "mended"

    def _warn(self, message: str, error: Exception | None) -> None:
        """At most one warning per minute, because searches may be frequent."""
        now = self._clock.monotonic()
        if self._warned_at is None or now - self._warned_at >= _WARNING_SECONDS:
            self._warned_at = now
            log.warning(message, extra={"path": str(self._path), "reason": str(error)})


def _identity(path: Path) -> int:
    """Identifies the file, as opposed to one that replaced it; 0 when there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0
