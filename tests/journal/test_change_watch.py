"""A task wakes when another process commits to the journal."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.core.events import SessionOpened
from hermes.core.world import SystemClock
from hermes.journal.change_watch import PAUSES_SECONDS, ChangeWatch
from tests.journal.samples import journal_in

POST = """
import asyncio, sys
from pathlib import Path
from hermes.core.commands import Say
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal

async def main():
    async with SqliteJournal(Path(sys.argv[1]), World()) as journal:
        await journal.post("s1", Say(text="Are you there?"))

asyncio.run(main())
"""
OPENED = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="")


async def test_a_commit_of_another_process_ends_the_wait(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("s1", [OPENED])
        with closing(ChangeWatch(journal.path, SystemClock())) as changes:
            await changes.wait()
            seen = journal.data_version()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", POST, str(journal.path)
            )
            async with asyncio.timeout(60):
                while journal.data_version() == seen:
                    await changes.wait()
                (waiting,) = await journal.pending_commands(lease)
            assert waiting.command == Say(text="Are you there?")
            assert await process.wait() == 0


async def test_a_commit_is_seen_though_the_log_changes_before_it(tmp_path: Path) -> None:
    """SQLite writes the log, syncs it, and only then shows the commit to others."""
    async with journal_in(tmp_path) as journal:
        await journal.create("s1", [OPENED])
        with closing(ChangeWatch(journal.path, SystemClock())) as changes:
            await changes.wait()
            log = tmp_path / "hermes.db-wal"
            for _ in range(3):
                seen = journal.data_version()
                # A change of the file alone, as before a commit that takes long.
                os.truncate(log, log.stat().st_size)
                await changes.wait()
                await journal.post("s1", Say(text="now"))
                async with asyncio.timeout(10):
                    while journal.data_version() == seen:
                        await changes.wait()


@pytest.mark.slow
async def test_an_idle_journal_is_looked_at_rarely(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.create("s1", [OPENED])
        with closing(ChangeWatch(journal.path, SystemClock())) as changes:
            for _ in range(len(PAUSES_SECONDS)):
                await changes.wait()
            waiting = asyncio.ensure_future(changes.wait())
            (tmp_path / "other.txt").write_text("not the journal")
            done, _ = await asyncio.wait((waiting,), timeout=1)
            assert not done
            await journal.post("s1", Say(text="now"))
            async with asyncio.timeout(20):
                await waiting


async def test_a_folder_that_comes_later_is_watched(tmp_path: Path) -> None:
    home = tmp_path / "later"
    with closing(ChangeWatch(home / "hermes.db", SystemClock())) as changes:
        await changes.wait()
        home.mkdir()
        await changes.wait()
        waiting = asyncio.ensure_future(changes.wait())
        (home / "hermes.db-wal").write_bytes(b"x")
        async with asyncio.timeout(20):
            await waiting
