"""The server's own store under many hands."""

import asyncio
from pathlib import Path

from hermes.surfaces.api.store import Store


async def test_changes_and_questions_from_many_tasks_do_not_disturb_each_other(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "api.db")

    async def one(n: int) -> int:
        row = (f"hash-{n}", "s", n, 1, 0.0)
        await store.change("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", [row])
        query = "SELECT n FROM threads WHERE hash = ?"
        return int(await store.run(lambda db: db.execute(query, row[:1]).fetchone()[0]))

    try:
        assert await asyncio.gather(*(one(n) for n in range(2_000))) == list(range(2_000))
    finally:
        await store.close()
