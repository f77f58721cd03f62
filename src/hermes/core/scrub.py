"""Scrubs deleted rows from SQLite files (VACUUM, then truncate the WAL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


PATIENCE_SECONDS = 10.0


def scrub_database(db: sqlite3.Connection, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Drop free pages and truncate the write-ahead log. Return False when a reader or a checkpoint
    keeps older pages in the log for longer than `patience_seconds`."""
    db.execute("VACUUM")
    return truncate_wal(db, patience_seconds=patience_seconds)


def truncate_wal(db: sqlite3.Connection, *, patience_seconds: float) -> bool:
    """Truncate the write-ahead log; see `scrub_database`."""
    (usual,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute(f"PRAGMA busy_timeout = {round(patience_seconds * 1000)}")
    busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    db.execute(f"PRAGMA busy_timeout = {usual}")
    return not busy


def describe_leftover(path: object) -> str:
    """Return the notice for a database that could not be scrubbed."""
    return (
        f"{path} may still have it on old pages, because another program reads there; forget it "
        "once more when that has ended"
    )
