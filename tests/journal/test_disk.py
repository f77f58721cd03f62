"""Disks that are full, read-only, or not made for write-ahead logs."""

from __future__ import annotations

import asyncio
import ctypes
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hermes.core.errors import DiskFull, Fenced, JournalError
from hermes.journal import connections
from hermes.journal.verify import verify
from tests.journal.processes import ROOT
from tests.journal.samples import journal_in, opened, said

libc = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MNT_DETACH = 1, 32, 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, b"size=1m") != 0:
        pytest.skip("needs the right to mount")
    yield folder
    libc.umount2(bytes(folder), MNT_DETACH)


async def test_a_full_disk_writes_nothing_and_later_everything(small_disk: Path) -> None:
    async with journal_in(small_disk) as journal:
        lease, records = await journal.create("one", [opened()])
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(600_000))
        with pytest.raises(DiskFull, match=r"^[^.]*nothing was written; free some space[^.]*\.$"):
            for number in range(100):
                text = f"{number} {'x' * 20_000}"
                records += await journal.append(lease, [said(text), said(text)])
        assert await journal.read("one") == records
        for _ in range(3):
            with pytest.raises(DiskFull):
                await journal.append(lease, [said("y" * 400_000)])
        ballast.unlink()
        records += await journal.append(lease, [said("Space again")])
        assert [record.n for record in records] == list(range(1, len(records) + 1))
        assert await journal.read("one") == records
        assert await verify(journal) == ()


@pytest.mark.parametrize("soon", [False, True])
async def test_a_lease_is_released_when_there_is_space_again(
    small_disk: Path, *, soon: bool
) -> None:
    async with journal_in(small_disk) as journal, journal_in(small_disk) as other:
        lease, _ = await journal.create("one", [opened()])
        kept, _ = await journal.create("two", [opened()])
        ballast = small_disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(DiskFull):
            await journal.append(kept, [said("x" * 20_000)])
        await journal.release(lease, soon=soon)
        with pytest.raises(DiskFull):
            await journal.append(kept, [said("x" * 20_000)])
        ballast.unlink()
        await journal.append(kept, [said("Space again")])
        again = await other.acquire("one")
        assert again.fence == lease.fence + 1
        with pytest.raises(Fenced):
            await journal.append(lease, [said("too late")])


async def test_a_session_opens_again_after_its_release_failed(small_disk: Path) -> None:
    async with journal_in(small_disk) as journal:
        lease, _ = await journal.create("one", [opened()])
        ballast = small_disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(DiskFull):
            await journal.append(lease, [said("x" * 20_000)])
        await journal.release(lease)
        ballast.unlink()
        again = await journal.acquire("one")
        await journal.append(again, [said("Space again")])
        assert await verify(journal) == ()


async def test_others_go_on_when_one_append_is_too_big(small_disk: Path) -> None:
    async with journal_in(small_disk) as journal:
        big, _ = await journal.create("big", [opened()])
        small, _ = await journal.create("small", [opened()])
        outcomes = await asyncio.gather(
            journal.append(small, [said("a")]),
            journal.append(big, [said("y" * 3_000_000)]),
            journal.append(small, [said("b")]),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], DiskFull)
        assert [record.event for record in await journal.read("small")][1:] == [
            said("a"),
            said("b"),
        ]
        assert await verify(journal) == ()


def test_a_limit_on_file_size_is_a_full_disk_too(tmp_path: Path) -> None:
    script = """
        import asyncio, resource, sys
        from pathlib import Path
        from hermes.core.errors import DiskFull
        from tests.journal.samples import journal_in, opened, said

        async def main(home):
            async with journal_in(home) as journal:
                lease, _ = await journal.create("one", [opened()])
                resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
                try:
                    for _ in range(100):
                        await journal.append(lease, [said("x" * 20_000)])
                except DiskFull:
                    sys.stdout.write("full ")
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                await journal.append(lease, [said("Space again")])
                sys.stdout.write((await journal.read("one"))[-1].event.message.text)

        asyncio.run(main(Path(sys.argv[1])))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == "full Space again"


async def test_a_home_that_cannot_be_written_says_so(small_disk: Path) -> None:
    libc.mount(b"tmpfs", bytes(small_disk), None, MS_REMOUNT | MS_RDONLY, b"size=1m")
    async with journal_in(small_disk) as journal:
        for attempt in (journal.create("one", [opened()]), journal.read("one")):
            with pytest.raises(JournalError, match="make the folder writable or choose another"):
                await attempt


async def test_a_home_that_became_read_only_says_so(small_disk: Path) -> None:
    async with journal_in(small_disk) as journal:
        await journal.create("one", [opened()])
    libc.mount(b"tmpfs", bytes(small_disk), None, MS_REMOUNT | MS_RDONLY, b"size=1m")
    async with journal_in(small_disk) as journal:
        with pytest.raises(JournalError, match="make the folder writable or choose another"):
            await journal.acquire("one")


async def test_a_home_that_is_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    async with journal_in(tmp_path / "home") as journal:
        with pytest.raises(JournalError, match="choose another home"):
            await journal.create("one", [opened()])


def test_without_write_ahead_logs_the_old_way_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # In memory there is no write-ahead log, as on some network file systems.
    db = sqlite3.connect(":memory:", isolation_level=None)
    connections.use_wal(db, tmp_path)
    db.close()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.slow
async def test_a_foreign_lock_is_explained_and_not_fatal(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened()])
        db = sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="database browser") as caught:
            await journal.append(lease, [said("Hi")])
        assert "database is locked" not in str(caught.value)
        db.execute("ROLLBACK")
        db.close()
        (record,) = await journal.append(lease, [said("Hi")])
        assert record.n == 2


def test_the_process_opens_the_file_through_sqlite_only(tmp_path: Path) -> None:
    script = """
        import asyncio, os, sys
        from pathlib import Path
        from tests.journal.samples import journal_in, opened, said
        from hermes.journal.upkeep import backup, stats, vacuum
        from hermes.journal.verify import verify
        home = Path(sys.argv[1])
        seen = []
        def hook(event, args):
            if event == "open" and Path(str(args[0])).name.startswith("hermes.db"):
                seen.append(Path(str(args[0])).name)
        sys.addaudithook(hook)

        async def main():
            async with journal_in(home) as journal:
                lease, _ = await journal.create("one", [opened(), said("Hi")])
                await journal.read("one")
                await verify(journal)
                await stats(journal)
                await vacuum(journal)
                await backup(journal, home / "copy.db")
        asyncio.run(main())
        sys.stdout.write(" ".join(sorted(set(seen))))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == "hermes.db.copy.lock hermes.db.lock"


async def test_a_file_that_was_just_being_made_is_read_as_soon_as_it_is_there(
    tmp_path: Path,
) -> None:
    readers = connections.ReaderPool(tmp_path / "hermes.db")
    # In the way where the file will be: it cannot be opened, as long as it is not made.
    readers.path.mkdir()
    with pytest.raises(JournalError):
        await readers.run(lambda db: db.execute("SELECT 1").fetchone())
    readers.path.rmdir()
    async with journal_in(tmp_path) as journal:
        await journal.create("one", [opened()])
        found = await readers.run(lambda db: db.execute("SELECT id FROM sessions").fetchall())
        readers.close()
    assert found == [("one",)]
