"""Stores data that a long-lived process needs after a restart and that is not in the journal."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import replace
from hermes.core.errors import DiskFull, JournalError
from hermes.hosting.request import TurnRequest, continuation_request
from hermes.hosting.run import Run, session_of

T = TypeVar("T")
Change = tuple[str, Sequence[tuple[object, ...]]]

SCHEMA = """
CREATE TABLE IF NOT EXISTS pending_runs (
    id TEXT PRIMARY KEY, request BLOB, at REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS idempotency_keys (
    key TEXT PRIMARY KEY, fingerprint TEXT, run_id TEXT, response BLOB, at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_keys_at ON idempotency_keys (at);
"""
# A quota or a file size limit is reported as a failed write.
FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")


class HostingStore:
    """A SQLite file with one connection and one thread per process. `durable` work survives a power
    failure, other work a crash of the process. `schema` creates the tables of the surface."""

    def __init__(self, path: Path, schema: str = "") -> None:
        self._path = path
        self._schema = SCHEMA + schema
        self._pool = ThreadPoolExecutor(1, "hosting-store")
        self._db: sqlite3.Connection | None = None
        self._is_durable: bool | None = None
        self._write_lock = asyncio.Lock()
        self._changes: list[Change] = []
        self._changing: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = False) -> T:
        """Run the work in a transaction. It must return values, not a cursor, which another thread
        would free during the next transaction."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._work, work, durable)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "").startswith(FULL):
                message = f"The disk of {self._path} is full; free some space and try again."
                raise DiskFull(message) from error
            raise JournalError(f"{self._path} cannot be used ({error}); check the file.") from error

    async def change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Run the statement for each row. Changes that wait for a running transaction share the
        next one."""
        if self._changing is None:
            self._changing = asyncio.ensure_future(self._change_all(self._changes))
        self._changes.append((statement, rows))
        await asyncio.shield(self._changing)

    async def _change_all(self, changes: list[Change]) -> None:
        async with self._write_lock:
            self._changing, self._changes = None, []

            def work(db: sqlite3.Connection) -> None:
                for statement, rows in changes:
                    db.executemany(statement, rows)

            await self.run(work)

    async def add_run(self, run: Run, request: TurnRequest) -> None:
        """Store a persistent run with its request: while it waits for capacity, it is not in the
        journal."""
        row = (run.id, encode(request), run.created_at)
        statement = "INSERT OR IGNORE INTO pending_runs VALUES (?, ?, ?)"
        await self.run(lambda db: db.execute(statement, row).rowcount, durable=True)

    async def remove_run(self, run: Run) -> None:
        await self.change("DELETE FROM pending_runs WHERE id = ?", [(run.id,)])

    async def unfinished_runs(self) -> list[tuple[str, TurnRequest]]:
        """The stored runs, oldest first, with requests that continue them."""
        query = "SELECT id, request FROM pending_runs ORDER BY at"
        rows = await self.run(lambda db: db.execute(query).fetchall())
        return [(id, _continue(id, request)) for id, request in rows if session_of(id)]

    async def close(self) -> None:
        def work() -> None:
            if self._db is not None:
                self._db.close()
                self._db = self._is_durable = None

        await asyncio.get_running_loop().run_in_executor(self._pool, work)
        self._pool.shutdown()

    def _work(self, work: Callable[[sqlite3.Connection], T], durable: bool) -> T:
        if self._db is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            db = sqlite3.connect(self._path, isolation_level=None, timeout=10)
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(self._schema)
            self._db = db
        db = self._db
        if durable is not self._is_durable:
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_durable = durable
        with db:
            db.execute("BEGIN IMMEDIATE" if durable else "BEGIN")
            return work(db)


def _continue(run_id: str, request: bytes | None) -> TurnRequest:
    try:
        found = decode(TurnRequest, request or b"")
    except DecodeError:
        # Another version stored it; the journal may hold the message.
        return continuation_request(session_of(run_id))
    create = "if_missing" if found.create == "always" else found.create
    return replace(found, is_retry=True, create=create)
