"""Deletes sessions, singly or by age, and archives them as compressed files."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.core.errors import JournalError, NotFound, SessionBusy, UsageError
from hermes.journal import leases, ledger
from hermes.journal.export import session_line
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import EVERYTHING, SessionFilter, conditions, info_of
from hermes.journal.schema import SESSION_TABLES
from hermes.journal.transaction import Transaction

_OF_SESSION = (*SESSION_TABLES, "log", "leases", "inbox", "quarantine", "sessions")


class PruneResult(Value):
    """`removed`, or in a dry run what would be. `kept` sessions were selected too, but a fork needs
    their records or they are open."""

    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


async def delete(journal: SqliteJournal, session_id: str) -> None:
    """NotFound; SessionBusy while the session is open; UsageError while a fork needs its
    records."""
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
            raise JournalError(f"Session {session_id} has just been used; it is not archived.")
        remove(tx, journal, session_id)

    await journal.writing(work)
    return path


def check_removable(
    tx: Transaction, journal: SqliteJournal, session_id: str, gone: frozenset[str] = frozenset()
) -> int:
    """The number of the session, if it may be removed once the sessions in `gone` are."""
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
    for table in _OF_SESSION:
        tx.db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    tx.db.execute("UPDATE sessions SET parent = NULL WHERE parent = ?", (session,))
    now = journal.world.clock.now()
    tx.db.execute("INSERT INTO removed VALUES (?, ?, ?)", (session, session_id, now))
    tx.forget(session)


def _select_sessions(wanted: SessionFilter, db: sqlite3.Connection) -> list[str]:
    """Forks come before their parents, so that these can be removed too."""
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
