"""A journal that was truncated, deleted, emptied or replaced: what is left is used, and the loss is
named."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hermes.core.errors import JournalError
from hermes.core.events import SessionOpened, TitleChanged
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.journal.repair import PAGE
from hermes.journal.verify import verify

OPENED = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="x" * 500)


async def fill(path: Path, sessions: int = 40) -> None:
    async with SqliteJournal(path, World()) as journal:
        for number in range(sessions):
            lease, _ = await journal.create(f"s{number:03}", [OPENED])
            await journal.append(lease, [TitleChanged(title=f"title {number}")])
            await journal.release(lease)


async def readable(path: Path) -> int:
    """The number of sessions whose first record can be read."""
    async with SqliteJournal(path, World()) as journal:
        query = "SELECT count(*) FROM log WHERE n = 1"
        found: int = (await journal.reading(lambda db: db.execute(query).fetchone()))[0]
        return found


async def problems_of(path: Path) -> list[str]:
    async with SqliteJournal(path, World()) as journal:
        return [problem.why for problem in await verify(journal)]


def damaged_copies(path: Path) -> list[str]:
    return [file.name for file in path.parent.glob("*.damaged-*")]


@pytest.mark.parametrize("pages", [1, 2, 3, 7])
async def test_a_truncated_file_is_recovered_and_names_what_is_lost(
    tmp_path: Path, pages: int
) -> None:
    path = tmp_path / "hermes.db"
    await fill(path, 120)
    os.truncate(path, path.stat().st_size - pages * PAGE)
    for _ in range(3):
        assert await problems_of(path)
    assert 0 < await readable(path) < 120
    assert len(damaged_copies(path)) == 1
    async with SqliteJournal(path, World()) as journal:
        lease, _ = await journal.create("new", [OPENED])
        await journal.release(lease)
    assert len(damaged_copies(path)) == 1


async def test_a_torn_last_page_is_recovered(tmp_path: Path) -> None:
    path = tmp_path / "hermes.db"
    await fill(path)
    os.truncate(path, path.stat().st_size - 100)
    assert await problems_of(path)
    assert await readable(path) > 30


@pytest.mark.parametrize("how", ["deleted", "emptied"])
async def test_a_lost_file_is_noticed_until_the_loss_is_accepted(tmp_path: Path, how: str) -> None:
    path = tmp_path / "hermes.db"
    await fill(path, 3)
    assert await problems_of(path) == []
    path.unlink()
    if how == "emptied":
        path.touch()
    await fill(path, 1)
    (loss,) = await problems_of(path)
    assert "it had 3 sessions and 6 records" in loss and "delete hermes.lost" in loss
    (tmp_path / "hermes.lost").unlink()
    assert await problems_of(path) == []


async def test_a_lost_write_ahead_log_is_noticed(tmp_path: Path) -> None:
    path, copy = tmp_path / "hermes.db", tmp_path / "copy" / "hermes.db"
    copy.parent.mkdir()
    await fill(path, 3)
    async with SqliteJournal(path, World()) as journal:
        lease, _ = await journal.create("more", [OPENED])
        await journal.release(lease)
        for name in ("hermes.db", "hermes.mark"):
            shutil.copyfile(tmp_path / name, copy.with_name(name))
        await journal.release(lease)
    (loss,) = await problems_of(copy)
    assert "it had 4 sessions and 7 records" in loss


async def test_deleted_sessions_are_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "hermes.db"
    await fill(path, 3)
    async with SqliteJournal(path, World()) as journal:
        await journal.writer.run(lambda tx: tx.db.execute("DELETE FROM log WHERE session = 3"))
        lease, _ = await journal.create("more", [OPENED])
        await journal.release(lease)
    assert not (tmp_path / "hermes.lost").exists()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, how: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = home / "hermes.db"
    async with SqliteJournal(path, World()) as journal:
        lease, _ = await journal.create("one", [OPENED])
        shutil.rmtree(home)
        if how == "replaced":
            home.mkdir()
            await fill(path, 1)
        with pytest.raises(JournalError, match="deleted or replaced while Hermes was running"):
            await journal.append(lease, [TitleChanged(title="lost")])
