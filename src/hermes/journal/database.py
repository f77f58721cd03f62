"""Opens `hermes.db` for writing, and checkpoints its write-ahead log beside the writer."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from hermes.codec.file_lock import FileLock
from hermes.core.scrub import truncate_wal
from hermes.journal import ledger, schema
from hermes.journal.connections import connect, use_wal

log = logging.getLogger(__name__)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the database for writing. The caller holds the write lock, so no other process does this
    at the same time."""
    db = connect(path, mode="rwc")
    try:
        is_new = schema.format_of(db) == 0
        if is_new:
            # By name, not by opening it: closing any other handle of the file would drop SQLite's
            # locks.
            path.chmod(0o600)
        use_wal(db, path)
        if is_new or not schema.is_current(db):
            _prepare_tables(db, is_new=is_new)
    except BaseException:
        # An open transaction is rolled back.
        db.close()
        raise
    return db


def _prepare_tables(db: sqlite3.Connection, *, is_new: bool) -> None:
    db.execute("BEGIN IMMEDIATE")
    if is_new:
        schema.create(db)
    else:
        schema.migrate(db)
        schema.repair_templates(db)
        if not schema.projections_are_whole(db):
            ledger.rebuild(db)
        schema.create_later_indexes(db)
    db.execute("COMMIT")


PAGE_BYTES = 4096
# SQLite's default: 4 MB of log. A longer log makes commits slower.
PAGES = 1_000
NEARLY = 64
ROUNDS = 8
_TRUNCATION_DUE = "log_to_empty"


class Checkpointer:
    """Copies the log into the database in a thread of its own. The log can restart only when
    nothing is left to copy, so the writer copies the last few pages between two commits (`finish`);
    they take about as long as a commit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages = 0
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._nearly_done = False
        self._copying = copy_lock(path)

    def count(self, *, rows_bytes: int, sessions: int) -> None:
        """Count a commit; the number of its pages is an estimate."""
        self._pages += 2 + 2 * sessions + 2 * rows_bytes // PAGE_BYTES
        if self._pages >= PAGES and not self._wanted.is_set():
            self._pages = 0
            if self._thread is None:
                # Without a thread, the writer copies the pages itself.
                self._nearly_done = True
            else:
                self._wanted.set()

    def begin(self, db: sqlite3.Connection) -> None:
        """Start the thread, and copy a long log that other processes left behind."""
        self._start()
        # Does not wait for readers. The caller holds the write lock.
        if _is_truncation_due(db) and truncate_wal(db, patience_seconds=0):
            mark_truncation_due(db, False)
        wal = self._path.with_name(f"{self._path.name}-wal")
        size = wal.stat().st_size if wal.exists() else 0
        if size > 2 * PAGES * PAGE_BYTES:
            self.count(rows_bytes=size, sessions=0)

    def finish(self, db: sqlite3.Connection) -> None:
        """Copy the last pages. The writer calls this outside a transaction."""
        if self._nearly_done:
            self._nearly_done = False
            try:
                _copy_pages(db)
            except sqlite3.Error as error:
                _warn(error)

    def close(self) -> None:
        self._closing.set()
        self._wanted.set()
        if self._thread:
            self._thread.join()

    def _start(self) -> None:
        """Start the thread before it is needed, because a failure to start cannot be handled after
        a commit."""
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._work, name="hermes-checkpoints", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("no thread for checkpoints", extra={"error": str(error)})
        else:
            self._thread = thread

    def _work(self) -> None:
        db: sqlite3.Connection | None = None
        while not self._closing.is_set():
            self._wanted.wait()
            try:
                if not self._closing.is_set():
                    db = db or connect(self._path, mode="rw")
                    self._copy_most(db)
            except (sqlite3.Error, OSError) as error:
                _warn(error)
            # Cleared only now, so that a request to close in the meantime is not lost.
            self._wanted.clear()
        if db is not None:
            db.close()
        self._copying.close()

    def _copy_most(self, db: sqlite3.Connection) -> None:
        """Copy pages until the writer can finish: each round only copies what was written during
        the round before."""
        with self._copying.hold(timeout=0) as is_ours:
            if not is_ours:
                # Another process copies the pages or truncates the log.
                return
            for _ in range(ROUNDS):
                if self._closing.is_set():
                    return
                if _copy_pages(db) <= NEARLY:
                    break
        self._nearly_done = True


def copy_lock(path: Path) -> FileLock:
    """Return the lock that is held while pages are copied without the write lock."""
    return FileLock(path.with_name(f"{path.name}.copy.lock"))


def mark_truncation_due(db: sqlite3.Connection, owed: bool) -> None:
    """Record whether the log still holds pages that must be scrubbed."""
    if owed:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, 1)", (_TRUNCATION_DUE,))
    elif _is_truncation_due(db):
        db.execute("DELETE FROM meta WHERE name = ?", (_TRUNCATION_DUE,))


def _is_truncation_due(db: sqlite3.Connection) -> bool:
    return (
        db.execute("SELECT 1 FROM meta WHERE name = ?", (_TRUNCATION_DUE,)).fetchone() is not None
    )


def _copy_pages(db: sqlite3.Connection) -> int:
    """Copy pages; return the number of those that a connection still uses."""
    _busy, pages, copied = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return max(0, int(pages) - int(copied))


def _warn(error: sqlite3.Error | OSError) -> None:
    log.warning("the write-ahead log could not be copied", extra={"error": str(error)})
