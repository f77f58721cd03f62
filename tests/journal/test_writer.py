"""The writing thread: shared commits, failures that stay with their cause, a quiet start."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from hermes.core.errors import Fenced, JournalError
from hermes.core.world import World
from hermes.journal.journal import SMALL, SqliteJournal
from hermes.journal.transaction import Transaction
from hermes.journal.verify import verify
from tests.journal.processes import ROOT
from tests.journal.samples import HandClock, journal_in, opened, said


class Points:
    """Counts commits, and can hold the writer just before one."""

    def __init__(self) -> None:
        self.commits = 0
        self.gate = threading.Event()
        self.gate.set()
        self._is_held = threading.Event()

    def reach(self, name: str) -> None:
        if name == "journal.before_commit" and not self.gate.is_set():
            self._is_held.set()
            self.gate.wait(60)
        self.commits += name == "journal.after_commit"

    async def held(self) -> None:
        """Until the writer stands before the closed gate."""
        assert await asyncio.to_thread(self._is_held.wait, 60)


def counted(home: Path) -> tuple[SqliteJournal, Points]:
    points = Points()
    world = World(clock=HandClock(), kill_point=points.reach)
    return SqliteJournal(home / "hermes.db", world), points


async def test_appends_that_wait_share_a_commit(tmp_path: Path) -> None:
    journal, points = counted(tmp_path)
    async with journal:
        leases = [(await journal.create(f"s{n}", [opened()]))[0] for n in range(20)]
        before = points.commits
        points.gate.clear()
        tasks = [asyncio.create_task(journal.append(lease, [said("Hi")])) for lease in leases]
        await asyncio.sleep(0.05)
        points.gate.set()
        await asyncio.gather(*tasks)
        assert points.commits - before <= 2


async def test_what_nobody_waits_for_shares_the_commit_of_who_does(tmp_path: Path) -> None:
    journal, points = counted(tmp_path)
    async with journal:
        one, _ = await journal.create("one", [opened()])
        two, _ = await journal.create("two", [opened()])
        before = points.commits
        points.gate.clear()
        # Too much for the caller's own thread.
        held = asyncio.create_task(journal.append(two, [said("0")] * (SMALL + 1)))
        await asyncio.sleep(0.02)
        await journal.release(one, soon=True)
        with pytest.raises(Fenced):
            task = asyncio.create_task(journal.append(one, [said("too late")]))
            await asyncio.sleep(0)
            points.gate.set()
            await task
        await held
        assert points.commits - before == 2
        assert (await journal.acquire("one")).fence == one.fence + 1


async def test_what_nobody_waits_for_is_done_before_the_journal_is_closed(tmp_path: Path) -> None:
    journal, points = counted(tmp_path)
    async with journal:
        lease, _ = await journal.create("one", [opened()])
        before = points.commits
        await journal.release(lease, soon=True)
    assert points.commits - before == 1
    db = sqlite3.connect(tmp_path / "hermes.db")
    assert db.execute("SELECT owner FROM leases").fetchall() == [("",)]
    db.close()


async def test_a_bad_job_does_not_spoil_the_others(tmp_path: Path) -> None:
    def broken(tx: Transaction) -> None:
        tx.db.execute("INSERT INTO meta VALUES ('half', 1)")
        tx.db.execute("SELECT * FROM nowhere")

    journal, points = counted(tmp_path)
    async with journal:
        good, _ = await journal.create("good", [opened()])
        void, _ = await journal.create("void", [opened()])
        await journal.release(void)
        points.gate.clear()
        # Too much for the caller's own thread.
        many = [said("0")] * (SMALL + 1)
        first = asyncio.create_task(journal.append(good, many))
        await points.held()
        tasks = [
            asyncio.create_task(journal.append(good, [said("1")])),
            asyncio.create_task(journal.append(void, [said("x")])),
            asyncio.create_task(journal.writing(broken)),
            asyncio.create_task(journal.append(good, [said("2")])),
        ]
        await asyncio.sleep(0.02)
        points.gate.set()
        outcomes = await asyncio.gather(first, *tasks, return_exceptions=True)
        kinds = [type(outcome) for outcome in outcomes]
        assert kinds == [tuple, tuple, Fenced, JournalError, tuple]
        events = [record.event for record in await journal.read("good")]
        assert events == [opened(), *many, said("1"), said("2")]
        query = "SELECT count(*) FROM meta WHERE name = 'half'"
        assert await journal.reading(lambda db: db.execute(query).fetchone()) == (0,)


async def test_a_job_whose_caller_gave_up_before_it_began_is_dropped(tmp_path: Path) -> None:
    journal, points = counted(tmp_path)
    async with journal:
        lease, _ = await journal.create("one", [opened()])
        points.gate.clear()
        many = [said(f"first {number}") for number in range(SMALL + 1)]
        first = asyncio.create_task(journal.append(lease, many))
        await points.held()
        second = asyncio.create_task(journal.append(lease, [said("second")]))
        await asyncio.sleep(0.02)
        second.cancel()
        await asyncio.sleep(0)
        points.gate.set()
        await first
        assert [record.event for record in await journal.read("one")][1:] == many


def test_making_a_journal_touches_nothing(tmp_path: Path) -> None:
    threads = threading.active_count()
    journal = journal_in(tmp_path / "home")
    assert threading.active_count() == threads
    assert list(tmp_path.iterdir()) == []
    asyncio.run(journal.close())
    assert list(tmp_path.iterdir()) == []


async def test_reading_needs_no_writing_thread(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        _, records = await journal.create("one", [opened()])
    async with journal_in(tmp_path) as journal:
        assert await journal.read("one") == records
        assert "hermes-journal" not in {thread.name for thread in threading.enumerate()}


async def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    lease, _ = await journal.create("one", [opened()])
    await journal.close()
    for attempt in (journal.append(lease, [said("Hi")]), journal.read("one")):
        with pytest.raises(JournalError, match="closed"):
            await attempt
    await journal.close()


async def test_the_log_beside_the_database_stays_small(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened()])
        for _ in range(120):
            await journal.append(lease, [said("x" * 2_000) for _ in range(50)])
        assert (tmp_path / "hermes.db").stat().st_size > 4_000_000
        assert (tmp_path / "hermes.db-wal").stat().st_size < 12_000_000


async def test_a_change_by_anybody_shows_in_the_probe(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal, journal_in(tmp_path) as other:
        await journal.create("one", [opened()])
        before = journal.data_version()
        assert journal.data_version() == before
        await other.create("two", [opened()])
        assert journal.data_version() != before


async def test_the_files_are_for_the_owner_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with journal_in(home) as journal:
        await journal.create("one", [opened()])
        modes = {path.name: path.stat().st_mode & 0o777 for path in home.rglob("*")}
        assert modes.pop("locks") == 0o700
        assert set(modes.values()) == {0o600}
    assert home.stat().st_mode & 0o777 == 0o700


async def test_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.create("one", [opened()])

        def settings(db: sqlite3.Connection) -> tuple[object, ...]:
            names = ("journal_mode", "synchronous")
            return tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)

        assert await journal.writing(lambda tx: settings(tx.db)) == ("wal", 2)


@pytest.mark.parametrize("count", [1, SMALL + 1], ids=["this thread", "writer thread"])
async def test_a_failure_after_the_commit_writes_nothing_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    def fail(name: str) -> None:
        if name == "journal.after_commit":
            raise RuntimeError("can't start new thread")

    world = World(clock=HandClock(), kill_point=fail)
    events = [said(str(number)) for number in range(count)]
    with caplog.at_level(logging.CRITICAL):
        async with SqliteJournal(tmp_path / "hermes.db", world) as journal:
            lease, _ = await journal.create("one", [opened()])
            await journal.append(lease, events)
            await journal.append(lease, [said("next")])
            found = [record.event for record in await journal.read("one")]
            assert found == [opened(), *events, said("next")]
            assert await verify(journal) == ()


NO_MORE_THREADS = """
    import asyncio, resource, sys, threading
    from pathlib import Path
    from hermes.core.errors import JournalError
    from hermes.journal.verify import verify
    from tests.journal.samples import journal_in, opened, said

    STACK = 1 << 28
    threading.stack_size(STACK)

    def allow(threads):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + int((threads + 0.5) * STACK)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

    async def main(home, before, after):
        async with journal_in(home) as journal:
            allow(before)
            try:
                lease, _ = await journal.create("one", [opened()])
            except JournalError as error:
                sys.stdout.write(str(error))
                allow(8)
                lease, _ = await journal.create("one", [opened()])
            allow(after)
            texts = [f"{number} {'x' * 4_000}" for number in range(600)]
            for text in texts:
                await journal.append(lease, [said(text)])
            allow(8)
            found = [record.event.message.text for record in (await journal.read("one"))[1:]]
            assert found == texts, (len(found), len(set(found)))
            assert await verify(journal) == ()
            assert (home / "hermes.db-wal").stat().st_size < 12_000_000

    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
"""


@pytest.mark.parametrize(
    ("before", "after", "said_so"),
    [(8, 0, ""), (1, 0, ""), (0, 8, "The system allows no further thread")],
    ids=["none left after the start", "only the writer", "none at all"],
)
def test_a_limit_of_threads_writes_nothing_twice(
    tmp_path: Path, before: int, after: int, said_so: str
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(NO_MORE_THREADS),
            *map(str, (tmp_path, before, after)),
        ],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said_so)


FEW_PROCESSES = """
    import asyncio, concurrent.futures.thread, os, resource, sys
    from pathlib import Path
    from hermes.journal.verify import verify
    from tests.journal.samples import exchange, opened
    from hermes.core.world import World
    from hermes.journal.journal import SqliteJournal

    async def chat(journal, name):
        lease, _ = await journal.create(name, [opened()])
        for turn in range(4):
            for event in exchange(turn, 2 + 10 * turn):
                await journal.append(lease, [event], turn_id=f"turn_{turn}")
        await journal.release(lease)

    async def main(home, uid, most):
        # Root has no process limit.
        os.chown(home, uid, uid)
        os.setgid(uid)
        os.setuid(uid)
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))
        async with SqliteJournal(home / "hermes.db", World()) as journal:
            names = [f"s{number}" for number in range(24)]
            await asyncio.gather(*(chat(journal, name) for name in names))
            for name in names:
                assert len(await journal.read(name)) == 41, name
            assert await verify(journal) == ()
        # The loop itself needs a thread to end.
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))

    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3, 7, 8])
def test_many_sessions_under_a_process_limit_are_written_once(
    tmp_path: Path, processes: int
) -> None:
    if os.getuid():
        pytest.skip("needs the right to become another user")
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(folder.stat().st_mode | 0o055)
    uid = 60_000 + os.getpid() % 5_000
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FEW_PROCESSES), tmp_path, str(uid), str(processes)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
