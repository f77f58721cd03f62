"""Maintenance of the journal file: statistics, retention, vacuum and backups."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from hermes.codec.file_lock import FileLock
from hermes.codec.values import Value
from hermes.config.session_settings import RetentionSettings
from hermes.core.errors import JournalError
from hermes.core.scrub import PATIENCE_SECONDS, scrub_database
from hermes.journal.connections import connect, journal_error
from hermes.journal.database import copy_lock, mark_truncation_due
from hermes.journal.journal import SqliteJournal
from hermes.journal.removal import PruneResult, prune
from hermes.journal.transaction import Transaction

_RAN = "retention_ran_at"


class JournalStats(Value):
    sessions: int = 0
    events: int = 0
    messages: int = 0
    bytes: int = 0
    free_bytes: int = 0
    quarantined: int = 0
    by_source: Mapping[str, int] = {}
    oldest_at: float | None = None
    newest_at: float | None = None


class RetentionResult(Value):
    """The result of a retention run. `ran` is False when it was off or not due."""

    ran: bool
    pruned: PruneResult = PruneResult()


async def stats(journal: SqliteJournal) -> JournalStats:
    return await journal.reading(_stats)


async def apply_retention(
    journal: SqliteJournal, settings: RetentionSettings, archive: Path
) -> RetentionResult:
    """Delete or archive old sessions, as the settings say, if that is due."""
    if settings.mode == "off":
        return RetentionResult(ran=False)
    query = "SELECT value FROM meta WHERE name = ?"
    row = await journal.reading(lambda db: db.execute(query, (_RAN,)).fetchone())
    now = journal.world.clock.now()
    if row and now - float(row[0]) < settings.min_interval_hours * 3_600:
        return RetentionResult(ran=False)
    pruned = await prune(
        journal,
        older_than_seconds=settings.days * 86_400,
        archive_to=archive if settings.mode == "archive" else None,
    )

    def note(tx: Transaction) -> None:
        tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_RAN, now))

    await journal.writing(note)
    if pruned.removed:
        await vacuum(journal)
    return RetentionResult(ran=True, pruned=pruned)


async def vacuum(journal: SqliteJournal, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Free the space of deleted records; all other writes wait meanwhile. Returns whether no old
    page is left: False when a reader uses one for longer than `patience_seconds`. Then the next
    process that opens the journal for writing truncates the log."""
    await journal.reading(lambda _db: None)
    return await asyncio.to_thread(_vacuum, journal.path, patience_seconds)


async def backup(journal: SqliteJournal, target: Path) -> None:
    """A consistent copy while others read and write. It replaces `target` when it is complete."""
    part = target.with_name(f"{target.name}.part")

    def copy(db: sqlite3.Connection) -> None:
        if target.absolute() == journal.path.absolute():
            raise JournalError("A journal cannot be backed up onto itself; choose another file.")
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as other:
            part.chmod(0o600)
            db.backup(other)
            # A single file, without a write-ahead log beside it.
            other.execute("PRAGMA journal_mode = DELETE")
        part.replace(target)

    await journal.reading(copy)


def _vacuum(path: Path, patience_seconds: float) -> bool:
    lock, copying = FileLock(path.with_name(f"{path.name}.lock")), copy_lock(path)
    try:
        # Keeps other processes from copying the log, which would make SQLite give up on truncating
        # it. Only readers are left to wait for.
        with lock.hold(), copying.hold(), closing(connect(path, mode="rw")) as db:
            is_wiped = scrub_database(db, patience_seconds=patience_seconds)
            mark_truncation_due(db, not is_wiped)
    except sqlite3.Error as error:
        raise journal_error(error, path) from error
    finally:
        copying.close()
        lock.close()
    return is_wiped


def _stats(db: sqlite3.Connection) -> JournalStats:
    def one(query: str) -> int:
        return int(db.execute(query).fetchone()[0] or 0)

    sessions, messages, oldest, newest = db.execute(
        "SELECT count(*), sum(message_count), min(started_at), max(last_at) FROM summaries"
    ).fetchone()
    by_source = db.execute("SELECT source, count(*) FROM summaries GROUP BY 1 ORDER BY 2 DESC, 1")
    page_bytes = one("PRAGMA page_size")
    return JournalStats(
        sessions=sessions,
        events=one("SELECT count(*) FROM log"),
        messages=messages or 0,
        bytes=one("PRAGMA page_count") * page_bytes,
        free_bytes=one("PRAGMA freelist_count") * page_bytes,
        quarantined=one("SELECT count(*) FROM quarantine"),
        by_source=dict(by_source.fetchall()),
        oldest_at=oldest,
        newest_at=newest,
    )
