"""All sessions of a home: find, list, search, transfer, verify and remove them."""

from __future__ import annotations

import asyncio
import shutil
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from hermes.codec.json import decode
from hermes.config.home import Home
from hermes.config.session_settings import RetentionSettings
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import GoalChanged, Record
from hermes.journal import export as session_export
from hermes.journal import import_ as session_import
from hermes.journal import listing, sessions, upkeep, verify
from hermes.journal.export import ExportedMessage, Redact
from hermes.journal.high_water import HighWaterMark
from hermes.journal.import_ import Imported
from hermes.journal.index.filters import Filters
from hermes.journal.index.search import MessageHit, SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import JOB_SOURCES, SessionFilter, SessionInfo, Spending
from hermes.journal.schema import goal_rows
from hermes.journal.sessions import Lineage
from hermes.journal.summaries import PICO
from hermes.journal.upkeep import JournalStats, PruneResult
from hermes.journal.verify import VerifyProblem

if TYPE_CHECKING:
    from hermes.credentials.event_redactor import SecretEventRedactor

S = TypeVar("S", bound=Struct)

INDEX_SECONDS = 3_600.0
# How many sessions are compared with an unknown name, and how many suggestions are shown.
MAX_COMPARED = 500
MAX_SUGGESTIONS = 3


class SessionArchive:
    """The stored sessions of a home, for commands. Reading never creates a journal; a home without
    one has no sessions. `redactor` redacts what is read, since a stored value may have become a
    secret later."""

    def __init__(
        self, journal: SqliteJournal, home: Home, redactor: SecretEventRedactor | None = None
    ) -> None:
        self._journal = journal
        self._home = home
        self._redactor = redactor

    async def find(self, text: str) -> str:
        """Find a session by id, id prefix or title; raise NotFound."""
        wanted = text.encode("utf-8", "replace").decode()
        if self._is_empty():
            raise NotFound(
                f"There is no session “{wanted}”: none exists yet; start one with `hermes`."
            )
        try:
            return await sessions.find(self._journal, wanted)
        except NotFound as error:
            if error.near:
                raise
            message = f"There is no session “{wanted}”; `hermes sessions list` shows all."
            raise NotFound(message, await self._near(wanted)) from error

    async def newest(self, source: str) -> str:
        found = None if self._is_empty() else await sessions.newest(self._journal, source)
        if not found:
            raise NotFound("There is no session to continue; start one with `hermes`.")
        return found

    async def exists(self, session_id: str) -> bool:
        """Return whether there is a session with exactly this id."""
        if self._is_empty():
            return False
        return await listing.session_info(self._journal, session_id) is not None

    async def info(self, session_id: str) -> SessionInfo:
        found = await listing.session_info(self._journal, session_id)
        if found is None:
            raise NotFound(f"There is no session {session_id}; `hermes sessions list` shows all.")
        return self._redact(found)

    async def recent(
        self, wanted: SessionFilter | None = None, *, limit: int | None = 20
    ) -> tuple[SessionInfo, ...]:
        """List sessions, last used first. Archived sessions are included only if `wanted` asks for
        them. Without `wanted`, the runs of scheduled jobs are left out."""
        if self._is_empty():
            return ()
        wanted = wanted or SessionFilter(exclude_sources=JOB_SOURCES)
        found = await listing.list_sessions(self._journal, wanted, limit=limit)
        return tuple(map(self._redact, found))

    async def records(self, session_id: str) -> tuple[Record, ...]:
        found = await self._journal.read(session_id)
        return found if self._redactor is None else tuple(map(self._redactor.record, found))

    async def conversation(self, session_id: str) -> tuple[ExportedMessage, ...]:
        """Return all messages with role and record number, including rewound ones."""
        return session_export.conversation_of(await self.records(session_id))

    async def lineage(self, session_id: str) -> Lineage:
        return await sessions.lineage(self._journal, session_id)

    async def search(
        self, query: str, *, limit: int = 10, inside: Sequence[str] | None = None
    ) -> tuple[MessageHit, ...]:
        filters = Filters(sessions=None if inside is None else frozenset(inside))
        found = await self._index().search(query, filters, limit=limit)
        return tuple(map(self._redact, found))

    async def rename(self, session_id: str, title: str) -> str:
        if self._redactor is not None:
            title = self._redactor.redact_new_text(title)
        return await sessions.retitle(self._journal, session_id, title)

    async def set_archived(self, session_id: str, *, away: bool) -> None:
        """Hide a session from lists, or show it again."""
        await sessions.set_archived(self._journal, session_id, away=away)

    async def free_title(self, title: str) -> str:
        """Return the title, with the next free number if it is taken."""
        return await sessions.free_title(self._journal, title)

    async def fork(self, session_id: str, *, at: int | None = None, title: str = "") -> str:
        return await sessions.fork(self._journal, session_id, at=at, title=title)

    async def find_continuation(self, session_id: str) -> str:
        """Return the newest session that continues this one after compactions."""
        return await sessions.find_continuation(self._journal, session_id)

    async def continue_compacted(self, session_id: str) -> str:
        """Return the session in which a conversation continues: a child after a compaction."""
        return await sessions.continue_compacted(self._journal, session_id)

    async def export(
        self, ids: Sequence[str] | None, *, redact: Redact | None
    ) -> AsyncIterator[bytes]:
        """Yield one JSON line per session; all sessions if `ids` is None."""
        if ids is None:
            ids = () if self._is_empty() else await session_export.all_ids(self._journal)
        return session_export.export_lines(self._journal, ids, redact=redact)

    async def markdown(self, session_id: str, *, redact: Redact | None) -> str:
        return await session_export.export_markdown(self._journal, session_id, redact=redact)

    async def import_file(self, path: Path) -> Imported:
        """Import a file of JSON lines, compressed or not; raise UsageError when it is
        unreadable."""
        try:
            done = await session_import.import_file(self._journal, path)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(
                f"{path} cannot be read ({error}); copy or export it again."
            ) from error
        return await self._search_index(done)

    async def import_lines(self, lines: Iterable[bytes]) -> Imported:
        return await self._search_index(await session_import.import_lines(self._journal, lines))

    async def verify(self, session_id: str | None = None) -> tuple[VerifyProblem, ...]:
        if not self._is_empty():
            return await verify.verify(self._journal, session_id)
        losses = HighWaterMark(self._journal.path).losses(None)
        return tuple(VerifyProblem(session_id="", n=0, why=why) for why in losses)

    async def delete(self, session_id: str) -> None:
        await upkeep.delete(self._journal, session_id)
        await self._remove_derived((session_id,))

    async def archive(self, session_id: str) -> Path:
        """Move a session into a file that can be imported again."""
        path = await upkeep.archive(self._journal, session_id, self._home.archive)
        await self._remove_derived((session_id,), keep_files=True)
        return path

    async def repair(self) -> tuple[VerifyProblem, ...]:
        """Repair the journal and rebuild the search index; return the remaining damage."""
        if self._is_empty():
            return ()
        left = await verify.repair_journal(self._journal)
        await self.rebuild_index()
        return left

    async def prune(
        self, age_seconds: float, wanted: SessionFilter, *, dry_run: bool, archive: bool
    ) -> PruneResult:
        """Remove, or move to files, the sessions unused for this long, ended or not."""
        if self._is_empty():
            return PruneResult()
        pruned = await upkeep.prune(
            self._journal,
            older_than_seconds=age_seconds,
            wanted=wanted,
            dry_run=dry_run,
            archive_to=self._home.archive if archive else None,
        )
        if not dry_run:
            await self._remove_derived(pruned.removed, keep_files=archive)
        return pruned

    async def report_retention(self, settings: RetentionSettings) -> str:
        """Apply the retention settings if they are due; return a message if sessions were removed,
        otherwise ""."""
        if self._is_empty():
            return ""
        pruned = await upkeep.apply_retention(self._journal, settings, self._home.archive)
        if pruned is None or not pruned.removed:
            return ""
        is_archived = settings.mode == "archive"
        await self._remove_derived(pruned.removed, keep_files=is_archived)
        verb = "archived" if is_archived else "removed"
        return f"{len(pruned.removed)} session(s) older than {settings.days} days were {verb}."

    async def stats(self) -> JournalStats:
        return JournalStats() if self._is_empty() else await upkeep.stats(self._journal)

    async def rebuild_index(self) -> None:
        await self._index().rebuild()

    async def optimize(self) -> tuple[int, int]:
        """Reclaim free space and rebuild the search index; return the bytes before and after."""
        if self._is_empty():
            return 0, 0
        before = (await self.stats()).bytes
        await upkeep.vacuum(self._journal)
        await self.rebuild_index()
        return before, (await self.stats()).bytes

    async def spending(
        self, *, session_id: str | None = None, since: float = 0.0
    ) -> tuple[Spending, ...]:
        if self._is_empty():
            return ()
        return await listing.read_spending(self._journal, session_id=session_id, since=since)

    async def job_of(self, session_id: str) -> str:
        """Return the job of a session for accounting; its own id if unknown."""
        query = "SELECT job FROM summaries JOIN sessions USING (session) WHERE id = ?"
        row = await self._journal.reading(lambda db: db.execute(query, (session_id,)).fetchone())
        return str(row[0]) if row else session_id

    async def spent_usd(self, session_id: str) -> float:
        """Return what the job of a session has cost so far, in dollars."""
        query = "SELECT cost FROM jobs WHERE job = ?"
        job = await self.job_of(session_id)
        row = await self._journal.reading(lambda db: db.execute(query, (job,)).fetchone())
        return row[0] / PICO if row else 0.0

    async def goals(self) -> dict[str, GoalChanged]:
        """Return the newest goal of every session that has one."""
        if self._is_empty():
            return {}
        rows = await self._journal.reading(goal_rows)
        found = {id: decode(GoalChanged, body) for id, body in rows}
        return {id: self._redact(goal) for id, goal in found.items()}

    def _redact(self, found: S) -> S:
        return found if self._redactor is None else self._redactor.redact_stored(found)

    def _is_empty(self) -> bool:
        return not self._home.journal.exists()

    def _index(self) -> SearchIndex:
        """Return an index that catches up completely before it answers."""
        source = JournalFile(self._home.journal)
        return SearchIndex(self._home.index, source, patience_seconds=INDEX_SECONDS)

    async def _search_index(self, done: Imported) -> Imported:
        """Index imported messages now, so that the first search is not slow."""
        if done.messages:
            await self._index().catch_up()
        return done

    async def _near(self, text: str) -> tuple[str, ...]:
        """Return the sessions whose title or id is most similar to the text."""
        # Imported late: slow to load and needed only for errors.
        from difflib import SequenceMatcher

        def similarity(info: SessionInfo) -> float:
            names = (info.id, info.title, info.preview[: len(text)])
            return max(SequenceMatcher(None, text.lower(), name.lower()).ratio() for name in names)

        known = await self.recent(listing.EVERYTHING, limit=MAX_COMPARED)
        best = sorted(known, key=similarity, reverse=True)[:MAX_SUGGESTIONS]
        return tuple(f"{info.id}  {info.title or info.preview}".rstrip() for info in best)

    async def _remove_derived(self, ids: Sequence[str], *, keep_files: bool = False) -> None:
        """Remove deleted sessions from the index and, unless `keep_files`, their folders and
        snapshot files."""
        # Imported late: removals are rare.
        from hermes.journal.json_snapshots import forget_snapshot

        if ids:
            await self._index().forget(sessions=ids)
        for session_id in () if keep_files else ids:
            await asyncio.to_thread(forget_snapshot, self._home, session_id)
            folder = self._home.sessions / session_id
            # The id of an imported session is untrusted and may contain path separators.
            if folder.parent == self._home.sessions and session_id != "..":
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
