"""Stores in `api.db` what the server needs after a restart and the journal does not hold."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hermes.core.errors import DiskFull, JournalError

T = TypeVar("T")
Change = tuple[str, Sequence[tuple[object, ...]]]

SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    hash TEXT PRIMARY KEY, session_id TEXT, n INTEGER, messages INTEGER, at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS threads_at ON threads (at);
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, client TEXT, session_id TEXT, n INTEGER, messages INTEGER,
    data BLOB, created_at REAL, accessed_at REAL
);
CREATE INDEX IF NOT EXISTS responses_accessed ON responses (accessed_at);
CREATE TABLE IF NOT EXISTS conversations (
    client TEXT, name TEXT, response_id TEXT, PRIMARY KEY (client, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS idempotency (
    key TEXT PRIMARY KEY, fingerprint TEXT, run_id TEXT, status INTEGER, body BLOB, headers TEXT,
    at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_at ON idempotency (at);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, at REAL
) WITHOUT ROWID;
"""
THREAD_SECONDS = 90 * 86_400.0
KEY_SECONDS = 86_400.0
# A quota or a file size limit is reported as a failed write.
FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")


class ApiStore:
    """One thread, one connection. `durable` work survives a power failure, other work a crash of
    the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(1, "api-store")
        self._db: sqlite3.Connection | None = None
        self._is_durable: bool | None = None
        self._turn = asyncio.Lock()
        self._changes: list[Change] = []
        self._changing: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = False) -> T:
        """Run the work in a transaction. It must return values, not a cursor, which another thread
        would free during the next transaction."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._work, work, durable)
        except sqlite3.Error as error:
            raise self._failure(error) from error

    async def change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Run the statement for each row. Changes that wait for a running transaction share the
        next one."""
        if self._changing is None:
            self._changing = asyncio.ensure_future(self._change_all(self._changes))
        self._changes.append((statement, rows))
        await asyncio.shield(self._changing)

    async def _change_all(self, changes: list[Change]) -> None:
        async with self._turn:
            self._changing, self._changes = None, []

            def work(db: sqlite3.Connection) -> None:
                for statement, rows in changes:
                    db.executemany(statement, rows)

            await self.run(work)

    async def tidy(self, now: float) -> None:
        """Delete expired threads and keys."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM threads WHERE at < ?", (now - THREAD_SECONDS,))
            db.execute("DELETE FROM idempotency WHERE at < ?", (now - KEY_SECONDS,))

        await self.run(work)

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._pool, self._close)
        self._pool.shutdown()

    def _failure(self, error: sqlite3.Error) -> JournalError:
        if getattr(error, "sqlite_errorname", "").startswith(FULL):
            return DiskFull(f"The disk of {self._path} is full; free some space and try again.")
        return JournalError(f"{self._path} cannot be used: {error}.")

    def _work(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> T:
        db = self._db or self._open()
        if durable is not self._is_durable:
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_durable = durable
        with db:
            db.execute("BEGIN IMMEDIATE" if durable else "BEGIN")
            return work(db)

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        db = sqlite3.connect(self._path, isolation_level=None, timeout=10)
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA)
        self._db = db
        return db

    def _close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = self._is_durable = None
