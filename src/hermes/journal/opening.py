"""Opens `hermes.db` for writing: creates, migrates and repairs it where that is cheap."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hermes.journal import ledger, schema
from hermes.journal.connections import connect, use_wal


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The caller holds the write lock, so no other process does this at the same time."""
    db = connect(path, mode="rwc")
    try:
        _prepare_tables(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _prepare_tables(db: sqlite3.Connection, path: Path) -> None:
    is_new = schema.format_of(db) == 0
    if is_new:
        # By name, not by opening it: closing any other handle of the file would drop SQLite's
        # locks.
        path.chmod(0o600)
    use_wal(db, path)
    if not is_new and schema.is_current(db):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        if is_new:
            schema.create(db)
        else:
            schema.migrate(db)
            schema.repair_templates(db)
            if not schema.projections_are_whole(db):
                ledger.rebuild(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
