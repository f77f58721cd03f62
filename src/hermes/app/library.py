"""All past sessions of a home: found, listed, searched, moved, checked and cleared away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from hermes.config.home import Home
from hermes.config.settings import RetentionSettings
from hermes.core.errors import NotFound
from hermes.core.events import Record
from hermes.journal import ages, intake, listing, removal, sessions, transfer, upkeep, verify
from hermes.journal.index.search import Hit, SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import SessionFilter, SessionInfo, Spending
from hermes.journal.transfer import Redact

__all__ = ["Hit", "Library", "SessionFilter", "SessionInfo", "Spending"]


class Library:
    def __init__(self, journal: SqliteJournal, home: Home) -> None:
        self._journal = journal
        self._home = home

    async def find(self, text: str) -> str:
        """The id of the session meant by an id, the beginning of one, or a title; NotFound."""
        return await sessions.find(self._journal, text)

    async def newest(self, source: str) -> str:
        found = await sessions.newest(self._journal, source)
        if not found:
            raise NotFound("There is no session to continue; start one with `hermes`.")
        return found

    async def info(self, session_id: str) -> SessionInfo:
        found = await listing.session_info(self._journal, session_id)
        if found is None:
            raise NotFound(f"There is no session {session_id}.")
        return found

    async def recent(
        self, wanted: SessionFilter | None = None, *, limit: int | None = 20
    ) -> tuple[SessionInfo, ...]:
        """Those last used first."""
        return await listing.list_sessions(self._journal, wanted or SessionFilter(), limit=limit)

    async def records(self, session_id: str) -> tuple[Record, ...]:
        return await self._journal.read(session_id)

    async def lineage(self, session_id: str) -> sessions.Lineage:
        return await sessions.lineage(self._journal, session_id)

    async def search(
        self, query: str, *, limit: int = 10, inside: Sequence[str] | None = None
    ) -> tuple[Hit, ...]:
        return await self._index().search(query, limit=limit, sessions=inside)

    async def rename(self, session_id: str, title: str) -> str:
        return await sessions.retitle(self._journal, session_id, title)

    async def free_title(self, title: str) -> str:
        """The title itself, or the next of its numbers that is free."""
        return await sessions.free_title(self._journal, title)

    async def fork(self, session_id: str, *, at: int | None = None, title: str = "") -> str:
        return await sessions.fork(self._journal, session_id, at=at, title=title)

    async def export(
        self, ids: Sequence[str] | None, *, redact: Redact | None
    ) -> AsyncIterator[bytes]:
        """One line of JSON per session; all sessions when no ids are given."""
        chosen = await transfer.all_ids(self._journal) if ids is None else ids
        return transfer.export_lines(self._journal, chosen, redact=redact)

    async def markdown(self, session_id: str, *, redact: Redact | None) -> str:
        return await transfer.export_markdown(self._journal, session_id, redact=redact)

    async def take_in(self, path: Path) -> intake.Imported:
        return await intake.import_file(self._journal, path)

    async def verify(self, session_id: str | None = None) -> tuple[verify.Problem, ...]:
        return await verify.verify(self._journal, session_id)

    async def delete(self, session_id: str) -> None:
        await removal.delete(self._journal, session_id)
        await self._index().forget(sessions=(session_id,))

    async def prune(
        self, age: str, wanted: SessionFilter, *, dry_run: bool, archive: bool
    ) -> removal.Pruned:
        """Remove, or move to files, the sessions that were not used for so long."""
        pruned = await removal.prune(
            self._journal,
            older_than_seconds=ages.parse_age(age),
            wanted=wanted,
            dry_run=dry_run,
            archive_to=self._home.archive if archive else None,
        )
        if pruned.removed and not dry_run:
            await self._index().forget(sessions=pruned.removed)
        return pruned

    async def retain(self, settings: RetentionSettings) -> upkeep.Retained:
        """What the settings say about old sessions, if it is time for it."""
        policy = upkeep.RetentionPolicy(
            enabled=settings.mode != "off",
            days=settings.days,
            archive_to=str(self._home.archive) if settings.mode == "archive" else "",
            min_interval_hours=settings.min_interval_hours,
        )
        retained = await upkeep.apply_retention(self._journal, policy)
        if retained.pruned.removed:
            await self._index().forget(sessions=retained.pruned.removed)
        return retained

    async def stats(self) -> upkeep.Stats:
        return await upkeep.stats(self._journal)

    async def check_index(self) -> Sequence[str]:
        """What is wrong with the search index; it is rebuilt by itself when it is next used."""
        return await self._index().check()

    async def rebuild_index(self) -> None:
        await self._index().rebuild()

    async def spending(
        self, *, session_id: str | None = None, since: float = 0.0
    ) -> tuple[Spending, ...]:
        return await listing.spending(self._journal, session_id=session_id, since=since)

    def _index(self) -> SearchIndex:
        return SearchIndex(self._home.index, JournalFile(self._home.journal))
