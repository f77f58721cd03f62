"""Remembers outside the journal how far it had come, so that a lost file or write-ahead log is
noticed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from hermes.journal.connections import ignore_damage


class Progress(NamedTuple):
    """The number of the newest session and of the newest record."""

    session: int = 0
    record: int = 0


class HighWaterMark:
    """The mark of one journal: a small file beside it, written after every commit. It is a lower
    bound, because it is not synchronised to the disk."""

    def __init__(self, journal: Path) -> None:
        self._file = journal.with_suffix(".mark")
        self._lost = journal.with_suffix(".lost")
        self._name = journal.name
        self._descriptor = -1
        self._written = Progress()

    def check(self, db: sqlite3.Connection) -> None:
        """Note a loss before new records hide it."""
        if (loss := self._find_loss(progress_of(db))) and not self._lost.exists():
            with contextlib.suppress(OSError):
                self._lost.write_text(f"{time.strftime('%Y-%m-%d %H:%M')}: {loss}\n")

    def update(self, db: sqlite3.Connection) -> None:
        now = progress_of(db)
        if now == self._written:
            return
        with contextlib.suppress(OSError):
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self._file, flags, 0o600)
            os.pwrite(self._descriptor, b"%020d %020d\n" % now, 0)
            self._written = now

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def losses(self, db: sqlite3.Connection | None) -> list[str]:
        """Describe what is missing now and what was missing earlier; `db` is None without a
        file."""
        found = []
        with contextlib.suppress(OSError):
            earlier = self._lost.read_text().strip()
            found.append(f"{earlier}; delete {self._lost.name} to accept the loss")
        if not found and (loss := self._find_loss(progress_of(db) if db else Progress())):
            found.append(loss)
        return found

    def _find_loss(self, now: Progress) -> str:
        mark = self._read()
        if now.session >= mark.session and now.record >= mark.record:
            return ""
        return (
            f"{self._name} ends at session {now.session} and record {now.record}, but it had "
            f"{mark.session} sessions and {mark.record} records: the file or its -wal was deleted, "
            "emptied or replaced"
        )

    def _read(self) -> Progress:
        try:
            session, record = self._file.read_text().split()
            return Progress(int(session), int(record))
        except (OSError, ValueError):
            return Progress()


def progress_of(db: sqlite3.Connection) -> Progress:
    with ignore_damage():
        query = "SELECT seq FROM sqlite_sequence WHERE name = 'sessions'"
        session = db.execute(query).fetchone()
        record = db.execute("SELECT max(id) FROM log").fetchone()
        return Progress(session[0] if session else 0, record[0] or 0)
    return Progress()
