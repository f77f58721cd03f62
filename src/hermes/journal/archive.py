"""All past sessions of a home: found, listed, searched, moved, checked and cleared away."""

from __future__ import annotations

import asyncio
import shutil
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from hermes.config.home import Home
from hermes.config.session_settings import RetentionSettings
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import Record
from hermes.journal import export as transfer
from hermes.journal import import_ as intake
from hermes.journal import listing, removal, sessions, upkeep, verify
from hermes.journal import listing as spending
from hermes.journal.export import ExportedMessage, Redact
from hermes.journal.import_ import Imported
from hermes.journal.index.search import SearchHit, SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import (
    SessionFilter,
    SessionInfo,
    Spending,
    parse_age,
    parse_date,
    parse_since,
)
from hermes.journal.removal import PruneResult
from hermes.journal.sessions import Lineage
from hermes.journal.upkeep import JournalStats
from hermes.journal.verify import VerifyProblem

if TYPE_CHECKING:
    from hermes.credentials.event_redactor import SecretEventRedactor

__all__ = [
    "ExportedMessage",
    "Imported",
    "JournalStats",
    "Lineage",
    "PruneResult",
    "Redact",
    "SearchHit",
    "SessionArchive",
    "SessionFilter",
    "SessionInfo",
    "Spending",
    "VerifyProblem",
    "parse_age",
    "parse_date",
    "parse_since",
]

S = TypeVar("S", bound=Struct)

# How many sessions are compared with a name that nobody has, and how many are then shown.
PATIENCE_SECONDS = 3_600.0
COMPARED = 500
NEAR = 3


class SessionArchive:
    """Looking never makes a journal: in a home without one there is simply nothing. `veil` is
    between the journal and whoever looks: a value may have become a secret since."""

    def __init__(
        self, journal: SqliteJournal, home: Home, veil: SecretEventRedactor | None = None
    ) -> None:
        self._journal = journal
        self._home = home
        self._veil = veil

    async def find(self, text: str) -> str:
        """The id of the session meant by an id, the beginning of one, or a title; NotFound."""
        wanted = text.encode("utf-8", "replace").decode()
        if self._is_empty():
            raise NotFound(f"There is no session “{wanted}”, nor any other; `hermes` starts one.")
        try:
            return await sessions.find(self._journal, wanted)
        except NotFound as error:
            if error.near:
                raise
            words = f"There is no session “{wanted}”; `hermes sessions list` shows all."
            raise NotFound(words, await self._near(wanted)) from error

    async def newest(self, source: str) -> str:
        found = None if self._is_empty() else await sessions.newest(self._journal, source)
        if not found:
            raise NotFound("There is no session to continue; start one with `hermes`.")
        return found

    async def info(self, session_id: str) -> SessionInfo:
        found = await listing.session_info(self._journal, session_id)
        if found is None:
            raise NotFound(f"There is no session {session_id}; `hermes sessions list` shows all.")
        return self._redact(found)

    async def recent(
        self, wanted: SessionFilter | None = None, *, limit: int | None = 20, offset: int = 0
    ) -> tuple[SessionInfo, ...]:
        """Those last used first, without the first `offset` of them; none that was put away unless
        it is wanted."""
        if self._is_empty():
            return ()
        found = await listing.list_sessions(
            self._journal, wanted or SessionFilter(), limit=limit, offset=offset
        )
        return tuple(map(self._redact, found))

    async def records(self, session_id: str) -> tuple[Record, ...]:
        found = await self._journal.read(session_id)
        return found if self._veil is None else tuple(map(self._veil.record, found))

    async def conversation(self, session_id: str) -> tuple[ExportedMessage, ...]:
        """All that was said, by whom and under which record number, what was taken back too."""
        return transfer.conversation_of(await self.records(session_id))

    async def lineage(self, session_id: str) -> Lineage:
        return await sessions.lineage(self._journal, session_id)

    async def search(
        self, query: str, *, limit: int = 10, inside: Sequence[str] | None = None
    ) -> tuple[SearchHit, ...]:
        found = await self._index().search(query, limit=limit, sessions=inside)
        return tuple(map(self._redact, found))

    async def rename(self, session_id: str, title: str) -> str:
        if self._veil is not None:
            title = self._veil.words(title)
        return await sessions.retitle(self._journal, session_id, title)

    async def set_archived(self, session_id: str, *, away: bool) -> None:
        """Take a session out of the lists, or bring it back into them."""
        await sessions.set_archived(self._journal, session_id, away=away)

    async def free_title(self, title: str) -> str:
        """The title itself, or the next of its numbers that is free."""
        return await sessions.free_title(self._journal, title)

    async def fork(self, session_id: str, *, at: int | None = None, title: str = "") -> str:
        return await sessions.fork(self._journal, session_id, at=at, title=title)

    async def export(
        self, ids: Sequence[str] | None, *, redact: Redact | None
    ) -> AsyncIterator[bytes]:
        """One line of JSON per session; all sessions when no ids are given."""
        if ids is None:
            ids = () if self._is_empty() else await transfer.all_ids(self._journal)
        return transfer.export_lines(self._journal, ids, redact=redact)

    async def markdown(self, session_id: str, *, redact: Redact | None) -> str:
        return await transfer.export_markdown(self._journal, session_id, redact=redact)

    async def import_file(self, path: Path) -> Imported:
        """A file of JSON lines, compressed or not; UsageError when it cannot be read."""
        try:
            done = await intake.import_file(self._journal, path)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{path} cannot be read ({error}); is it whole?") from error
        return await self._search_index(done)

    async def import_lines(self, lines: Iterable[bytes]) -> Imported:
        return await self._search_index(await intake.import_lines(self._journal, lines))

    async def verify(self, session_id: str | None = None) -> tuple[VerifyProblem, ...]:
        return () if self._is_empty() else await verify.verify(self._journal, session_id)

    async def delete(self, session_id: str) -> None:
        await removal.delete(self._journal, session_id)
        await self._forget((session_id,))

    async def archive(self, session_id: str) -> Path:
        """Move a session into a file, which brings it back when it is taken in."""
        path = await removal.archive(self._journal, session_id, self._home.archive)
        await self._forget((session_id,), keep_files=True)
        return path

    async def repair(self) -> tuple[VerifyProblem, ...]:
        """Mend the journal's file and make the search index anew; what is still damaged then."""
        if self._is_empty():
            return ()
        left = await verify.repair_journal(self._journal)
        await self.rebuild_index()
        return left

    async def prune(
        self, age_seconds: float, wanted: SessionFilter, *, dry_run: bool, archive: bool
    ) -> PruneResult:
        """Remove, or move to files, the sessions that were not used for so long: those that were
        ended and those that were just left."""
        if self._is_empty():
            return PruneResult()
        pruned = await removal.prune(
            self._journal,
            older_than_seconds=age_seconds,
            wanted=wanted,
            dry_run=dry_run,
            archive_to=self._home.archive if archive else None,
        )
        if not dry_run:
            await self._forget(pruned.removed, keep_files=archive)
        return pruned

    async def apply_retention(self, settings: RetentionSettings) -> upkeep.RetentionResult:
        """What the settings say about old sessions, if it is time for it."""
        if self._is_empty():
            return upkeep.RetentionResult(ran=False)
        archive = settings.mode == "archive"
        policy = upkeep.RetentionPolicy(
            enabled=settings.mode != "off",
            days=settings.days,
            archive_to=str(self._home.archive) if archive else "",
            min_interval_hours=settings.min_interval_hours,
        )
        retained = await upkeep.apply_retention(self._journal, policy)
        await self._forget(retained.pruned.removed, keep_files=archive)
        return retained

    async def report_retention(self, settings: RetentionSettings) -> str:
        """The same, and a sentence about it if something went."""
        if settings.mode == "off":
            return ""
        done = await self.apply_retention(settings)
        if not done.pruned.removed:
            return ""
        verb = "archived" if settings.mode == "archive" else "removed"
        count = len(done.pruned.removed)
        return f"{count} session(s) older than {settings.days} days were {verb}."

    async def stats(self) -> JournalStats:
        if not self._is_empty():
            return await upkeep.stats(self._journal)
        return JournalStats(
            sessions=0,
            events=0,
            messages=0,
            bytes=0,
            free_bytes=0,
            quarantined=0,
            by_source={},
            oldest_at=None,
            newest_at=None,
        )

    async def rebuild_index(self) -> None:
        await self._index().rebuild()

    async def optimize(self) -> tuple[int, int]:
        """Give back what deleted sessions took and make the search index anew: the bytes before
        and after."""
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
        return await spending.read_spending(self._journal, session_id=session_id, since=since)

    async def job_of(self, session_id: str) -> str:
        """What a session is a part of, for the accounts; its own id where nobody knows it."""
        return await spending.job_of(self._journal, session_id)

    def _redact(self, found: S) -> S:
        return found if self._veil is None else self._veil.seen(found)

    def _is_empty(self) -> bool:
        return not self._home.journal.exists()

    def _index(self) -> SearchIndex:
        """One that answers when all is taken in: whoever asks here wants everything found."""
        source = JournalFile(self._home.journal)
        return SearchIndex(self._home.index, source, patience_seconds=PATIENCE_SECONDS)

    async def _search_index(self, done: Imported) -> Imported:
        """What comes in by the thousand is made findable at once, not by the first search."""
        if done.messages:
            await self._index().catch_up()
        return done

    async def _near(self, text: str) -> tuple[str, ...]:
        """The sessions whose title or id looks most like the text, then the newest ones."""
        # Needed on the way out only, and slow to load.
        from difflib import SequenceMatcher

        def likeness(info: SessionInfo) -> float:
            names = (info.id, info.title, info.preview[: len(text)])
            return max(SequenceMatcher(None, text.lower(), name.lower()).ratio() for name in names)

        known = await self.recent(listing.EVERYTHING, limit=COMPARED)
        best = sorted(known, key=likeness, reverse=True)[:NEAR]
        return tuple(f"{info.id}  {info.title or info.preview}".rstrip() for info in best)

    async def _forget(self, ids: Sequence[str], *, keep_files: bool = False) -> None:
        """Sessions that the journal has let go also leave the index and, unless they may come
        back, their folders of command output and the files they were written to."""
        # Sessions go seldom.
        from hermes.journal.json_snapshots import forget_snapshot

        if ids:
            await self._index().forget(sessions=ids)
        for session_id in () if keep_files else ids:
            await asyncio.to_thread(forget_snapshot, self._home, session_id)
            folder = self._home.sessions / session_id
            # An id from a file of somebody else may be anything, also a way out of the folder.
            if folder.parent == self._home.sessions and session_id != "..":
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
