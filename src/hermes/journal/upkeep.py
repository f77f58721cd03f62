"""Maintains the journal: deletes and archives sessions, applies retention, vacuums, backs up."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.file_lock import FileLock
from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.config.session_settings import RetentionSettings
from hermes.core.errors import JournalError, NotFound, SessionBusy, UsageError
from hermes.core.scrub import PATIENCE_SECONDS, scrub_database
from hermes.journal import leases, ledger
from hermes.journal.connections import connect, journal_error
from hermes.journal.database import copy_lock, mark_truncation_due
from hermes.journal.export import session_line
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import EVERYTHING, SessionFilter, conditions, info_of
from hermes.journal.schema import SESSION_TABLES
from hermes.journal.transaction import Transaction

_TABLES_WITH_SESSION = (*SESSION_TABLES, "log", "leases", "inbox", "quarantine", "sessions")
_RAN = "retention_ran_at"


class PruneResult(Value):
    """The sessions that were pruned, or would be in a dry run."""

    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()  # selected too, but open or needed by a fork


async def delete(journal: SqliteJournal, session_id: str) -> None:
    """Delete a session. Raises NotFound, SessionBusy while it is open, and UsageError while a fork
    needs its records."""
    await journal.writing(lambda tx: remove(tx, journal, session_id))


async def prune(
    journal: SqliteJournal,
    *,
    older_than_seconds: float,
    wanted: SessionFilter = EVERYTHING,
    dry_run: bool = False,
    archive_to: Path | None = None,
) -> PruneResult:
    """Delete the selected sessions whose last record is older. Most sessions never end explicitly,
    so the last record counts."""
    limit = journal.world.clock.now() - older_than_seconds
    wanted = replace(wanted, before=limit if wanted.before is None else min(limit, wanted.before))
    ids = await journal.reading(partial(_select_sessions, wanted))
    if dry_run:
        return await journal.writing(lambda tx: _dry_run(tx, journal, ids))
    removed: list[str] = []
    kept: list[str] = []
    for session_id in ids:
        try:
            if archive_to is not None:
                await archive(journal, session_id, archive_to)
            else:
                await delete(journal, session_id)
        except NotFound:
            continue
        except (SessionBusy, UsageError):
            kept.append(session_id)
        else:
            removed.append(session_id)
    return PruneResult(removed=tuple(removed), kept=tuple(kept))


async def archive(journal: SqliteJournal, session_id: str, folder: Path) -> Path:
    """Move a session into `<folder>/<id>.jsonl.gz`; importing the file restores it."""
    await journal.writing(lambda tx: check_removable(tx, journal, session_id))
    line = await journal.reading(partial(session_line, session_id=session_id))
    path = folder / f"{session_id.replace('/', '_')}.jsonl.gz"
    # A fixed time in the header: the same session always gives the same bytes.
    data = await asyncio.to_thread(gzip.compress, encode(line) + b"\n", mtime=0)
    await asyncio.to_thread(replace_file, path, data, mode=0o600)

    def work(tx: Transaction) -> None:
        info = info_of(tx.db, session_id)
        if info is not None and info.last_n != line.last_n:
            raise JournalError(f"Session {session_id} changed while it was archived; try again.")
        remove(tx, journal, session_id)

    await journal.writing(work)
    return path


def check_removable(
    tx: Transaction, journal: SqliteJournal, session_id: str, gone: frozenset[str] = frozenset()
) -> int:
    """Return the number of the session, if it may be removed once the sessions in `gone` are."""
    session = tx.session(session_id)
    leases.check_available(tx, session, session_id, journal.writer.owner, journal.world.clock.now())
    query = "SELECT id FROM sessions WHERE parent = ? AND parent_n > 0"
    forks = [id for (id,) in tx.db.execute(query, (session,)) if id not in gone]
    if forks:
        raise UsageError(
            f"Session {session_id} shares its records with {', '.join(forks[:5])}; "
            "delete the forks first."
        )
    return session


def remove(tx: Transaction, journal: SqliteJournal, session_id: str) -> None:
    session = check_removable(tx, journal, session_id)
    tx.settle()
    newest = "SELECT max(id) FROM log WHERE session = ?"
    last_id = tx.db.execute(newest, (session,)).fetchone()[0] or 0
    tx.db.execute(
        "INSERT INTO meta VALUES ('last_removed_id', ?)"
        " ON CONFLICT(name) DO UPDATE SET value = max(value, excluded.value)",
        (last_id,),
    )
    ledger.keep_spending(tx.db, session)
    for table in _TABLES_WITH_SESSION:
        tx.db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    tx.db.execute("UPDATE sessions SET parent = NULL WHERE parent = ?", (session,))
    now = journal.world.clock.now()
    tx.db.execute("INSERT INTO removed VALUES (?, ?, ?)", (session, session_id, now))
    tx.forget(session)


def _select_sessions(wanted: SessionFilter, db: sqlite3.Connection) -> list[str]:
    """Return the selected sessions, forks before their parents, so that these can be removed
    too."""
    where, values = conditions(wanted)
    query = "SELECT s.id FROM sessions AS s JOIN summaries AS m USING (session)"
    found = db.execute(f"{query} WHERE {where} ORDER BY session DESC", values)
    return [id for (id,) in found]


def _dry_run(tx: Transaction, journal: SqliteJournal, ids: Sequence[str]) -> PruneResult:
    gone: set[str] = set()
    kept: list[str] = []
    for session_id in ids:
        try:
            check_removable(tx, journal, session_id, frozenset(gone))
        except (SessionBusy, UsageError, NotFound):
            kept.append(session_id)
        else:
            gone.add(session_id)
    return PruneResult(removed=tuple(id for id in ids if id in gone), kept=tuple(kept))


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


async def stats(journal: SqliteJournal) -> JournalStats:
    return await journal.reading(_stats)


async def apply_retention(
    journal: SqliteJournal, settings: RetentionSettings, folder: Path
) -> PruneResult | None:
    """Delete or archive old sessions, as the settings say; None when that is off or not due."""
    if settings.mode == "off":
        return None
    query = "SELECT value FROM meta WHERE name = ?"
    row = await journal.reading(lambda db: db.execute(query, (_RAN,)).fetchone())
    now = journal.world.clock.now()
    if row and now - float(row[0]) < settings.min_interval_hours * 3_600:
        return None
    pruned = await prune(
        journal,
        older_than_seconds=settings.days * 86_400,
        archive_to=folder if settings.mode == "archive" else None,
    )

    def note(tx: Transaction) -> None:
        tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_RAN, now))

    await journal.writing(note)
    if pruned.removed:
        await vacuum(journal)
    return pruned


async def vacuum(journal: SqliteJournal, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Free the space of deleted records; all other writes wait meanwhile. Return True when no old
    page is left, and False when a reader uses one for longer than `patience_seconds`. Then the next
    process that opens the journal for writing truncates the log."""
    await journal.reading(lambda _db: None)
    return await asyncio.to_thread(_vacuum, journal.path, patience_seconds)


async def backup(journal: SqliteJournal, target: Path) -> None:
    """Make a consistent copy while others read and write. It replaces `target` when it is
    complete."""
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
