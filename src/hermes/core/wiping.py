"""Databases from which something was taken out: no page of before is left in their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


PATIENCE_SECONDS = 10.0


def wiped(db: sqlite3.Connection, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
    """Drop free pages and cut the write-ahead log to nothing. False when somebody still reads what
    was there before for longer than our patience, or copies the log right now: then older pages
    are left in the log."""
    db.execute("VACUUM")
    return emptied(db, patience_seconds=patience_seconds)


def emptied(db: sqlite3.Connection, *, patience_seconds: float) -> bool:
    """Cut the write-ahead log to nothing, see `wiped`."""
    (usual,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute(f"PRAGMA busy_timeout = {round(patience_seconds * 1000)}")
    busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    db.execute(f"PRAGMA busy_timeout = {usual}")
    return not busy


def left_in(path: object) -> str:
    """What to tell about a database that could not be wiped."""
    return (
        f"{path} may still have it on old pages, because another program reads there; forget it "
        "once more when that has ended"
    )
