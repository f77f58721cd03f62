"""Concurrent access to the store."""

import asyncio
from pathlib import Path

import pytest

from hermes.core.errors import JournalError
from hermes.hosting.store import HostingStore


async def test_changes_and_questions_from_many_tasks_do_not_disturb_each_other(
    tmp_path: Path,
) -> None:
    schema = "CREATE TABLE IF NOT EXISTS threads (hash TEXT PRIMARY KEY, n INTEGER);"
    store = HostingStore(tmp_path / "hosting.db", schema)

    async def one(n: int) -> int:
        row = (f"hash-{n}", n)
        await store.change("INSERT OR REPLACE INTO threads VALUES (?, ?)", [row])
        query = "SELECT n FROM threads WHERE hash = ?"
        return int(await store.run(lambda db: db.execute(query, row[:1]).fetchone()[0]))

    try:
        assert await asyncio.gather(*(one(n) for n in range(2_000))) == list(range(2_000))
    finally:
        await store.close()


async def test_a_change_that_cannot_be_made_is_reported_and_hinders_no_later_one(
    tmp_path: Path,
) -> None:
    store = HostingStore(tmp_path / "hosting.db")
    try:
        with pytest.raises(JournalError):
            await store.change("INSERT INTO nowhere VALUES (?)", [(1,)])
        await store.change("INSERT INTO pending_runs VALUES (?, ?, ?)", [("run", None, 0.0)])
        count = "SELECT count(*) FROM pending_runs"
        assert await store.run(lambda db: db.execute(count).fetchone()[0]) == 1
    finally:
        await store.close()
