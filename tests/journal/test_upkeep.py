"""Numbers, space and copies of the journal file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.core.errors import JournalError
from hermes.journal.upkeep import JournalStats, backup, delete, stats, vacuum
from hermes.journal.verify import verify
from tests.journal.samples import BEGINNING, exchange, journal_in, opened, said


async def test_the_numbers_of_a_journal(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        empty = await stats(journal)
        assert (empty.sessions, empty.events, empty.oldest_at) == (0, 0, None)
        await journal.create("one", [opened(), *exchange(1, 2)])
        await journal.create("two", [opened("cron")])
        found = await stats(journal)
        assert found == JournalStats(
            sessions=2,
            events=12,
            messages=3,
            bytes=found.bytes,
            free_bytes=0,
            quarantined=0,
            by_source={"cli": 1, "cron": 1},
            oldest_at=BEGINNING,
            newest_at=BEGINNING,
        )
        assert found.bytes >= 4096


async def test_vacuum_gives_space_back_and_work_goes_on(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("big", [opened(), *(said("x" * 9_000) for _ in range(200))])
        kept, records = await journal.create("small", [opened()])
        await journal.release(lease)
        await delete(journal, "big")
        before = await stats(journal)
        assert before.free_bytes > 1_000_000
        await vacuum(journal)
        after = await stats(journal)
        assert after.bytes < before.bytes - 1_000_000
        (record,) = await journal.append(kept, [said("Still here")])
        assert await journal.read("small") == (*records, record)
        assert await verify(journal) == ()


async def test_a_backup_is_whole_while_others_write(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened()])

        async def write() -> None:
            for number in range(200):
                await journal.append(lease, [said(f"{number} {'x' * 500}")])

        target = tmp_path / "copies" / "hermes.db"
        target.parent.mkdir()
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            for _ in range(5):
                await backup(journal, target)
        records = await journal.read("one")
        await backup(journal, target)
        with pytest.raises(JournalError, match="itself"):
            await backup(journal, journal.path)
    assert [path.name for path in target.parent.iterdir()] == ["hermes.db"]
    assert target.stat().st_mode & 0o777 == 0o600
    async with journal_in(target.parent) as copy:
        assert await copy.read("one") == records
        assert await verify(copy) == ()
