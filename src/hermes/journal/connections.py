"""Opens connections to `hermes.db`, pools readers, and classifies errors."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from functools import partial
from pathlib import Path
from typing import TypeVar

from hermes.core.errors import DiskFull, JournalError, describe_shortage

log = logging.getLogger(__name__)

T = TypeVar("T")

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ")
# SQLite reports only ENOSPC as full; a quota or file size limit is a failed write.
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")
_READ_ONLY = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")


def name_of(error: sqlite3.Error | OSError) -> str:
    """Return SQLite's name of the error, or ""."""
    return str(getattr(error, "sqlite_errorname", ""))


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is damaged, as opposed to busy, full or unreachable."""
    return name_of(error).startswith(_DAMAGE)


def is_forbidden(error: sqlite3.Error) -> bool:
    """Whether the file could not be opened or created."""
    return name_of(error).startswith(_READ_ONLY)


@contextmanager
def ignore_damage() -> Iterator[None]:
    """Suppress errors of a damaged file; the rest of the block is skipped."""
    try:
        yield
    except sqlite3.Error as error:
        if not is_damage(error):
            raise


def read_around_damage(read: Callable[[int, int], list[T]], first: int, last: int) -> list[T]:
    """Return the results of `read` for a range of ids. The range is halved around bad pages, so
    that only their rows are left out."""
    with ignore_damage():
        return read(first, last)
    if first >= last:
        return []
    middle = (first + last) // 2
    return read_around_damage(read, first, middle) + read_around_damage(read, middle + 1, last)


def first_readable(db: sqlite3.Connection, *queries: str) -> int:
    """Return the number that the first readable query returns, or 0."""
    for query in queries:
        with ignore_damage():
            return int(db.execute(query).fetchone()[0] or 0)
    return 0


def journal_error(error: sqlite3.Error | OSError, path: Path) -> JournalError:
    """Return the error as one sentence for a person, with the next step."""
    name = name_of(error)
    is_full = isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT, EFBIG)
    if is_full or name.startswith(_FULL):
        return DiskFull(
            f"The disk of {path.parent} is full or over a limit, so nothing was written; "
            "free some space and try again."
        )
    if shortage := describe_shortage(error):
        return JournalError(f"The journal in {path.parent} cannot be written. {shortage}")
    advice = "make the folder writable or choose another home."
    if isinstance(error, OSError):
        text = f"The journal in {path.parent} cannot be written ({error.strerror}); {advice}"
    elif is_forbidden(error):
        text = f"{path} cannot be opened for writing; {advice}"
    elif name.startswith(_BUSY):
        text = f"Another program has locked {path} (a database browser?); close it and try again."
    elif is_damage(error):
        text = (
            f"A part of {path} is damaged ({error}); `hermes sessions verify` names what is lost."
        )
    else:
        text = f"The journal {path} failed: {error}."
    return JournalError(text)


BUSY_SECONDS = 10.0
# The size that a restarted write-ahead log keeps: allocated space makes commits faster, and more
# has no use.
WAL_BYTES = 4 << 20


def open_raw(path: Path, *, mode: str) -> sqlite3.Connection:
    """Open a connection without running a statement, so that it has read nothing from the file."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """Open a connection. `mode` is SQLite's: "rw" for an existing file, "rwc" to create it."""
    db = open_raw(path, mode=mode)
    try:
        db.execute("PRAGMA synchronous = FULL")
        # The `Checkpointer` copies the log, never an append.
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def use_wal(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        db.execute("PRAGMA journal_mode = DELETE")
        log.warning(
            "no write-ahead log on this file system: readers and writers wait for each other",
            extra={"path": str(path)},
        )


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in another thread, or here when the system allows no further thread."""
    try:
        return await asyncio.to_thread(work)
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        return work()


class ReaderPool:
    """Read connections, each used by one thread at a time and then reused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._is_immutable = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await run_in_thread(partial(self.use, work))

    def use(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in this thread. SQLite errors become JournalError."""
        if self._closed:
            raise JournalError("The journal is closed.")
        try:
            try:
                db = self._idle.pop()
            except IndexError:
                db = open_immutable(self.path) if self._is_immutable else open_reader(self.path)
            try:
                return work(db)
            finally:
                if self._closed:
                    db.close()
                else:
                    self._idle.append(db)
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.Error) and is_forbidden(error) and self._use_immutable():
                return self.use(work)
            if isinstance(error, sqlite3.Error) and is_damage(error):
                # A repair may have replaced the file.
                self._close_idle()
            raise journal_error(error, self.path) from error

    def close(self) -> None:
        self._closed = True
        self._close_idle()

    def _use_immutable(self) -> bool:
        """Switch to reading the file as immutable, once; return whether that is possible."""
        if self._is_immutable:
            return False
        self._is_immutable = is_read_only_copy(self.path)
        self._close_idle()
        return self._is_immutable

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


def is_read_only_copy(path: Path) -> bool:
    """Whether the file is not writable here and holds all commits. A writable file that could not
    be opened is being created by another process."""
    if not path.exists() or all(
        os.access(target, os.W_OK, effective_ids=True) for target in (path, path.parent)
    ):
        return False
    log_of_writes = path.with_name(f"{path.name}-wal")
    return not (log_of_writes.exists() and log_of_writes.stat().st_size)


def open_immutable(path: Path) -> sqlite3.Connection:
    """Open a connection to a file that nobody changes. It takes no lock and creates no other
    file."""
    return open_raw(path, mode="ro&immutable=1")


def open_reader(path: Path) -> sqlite3.Connection:
    db = connect(path, mode="rw")
    db.execute("PRAGMA query_only = ON")
    return db
