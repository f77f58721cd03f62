"""Ownership: who lives keeps a session, who is silent loses it, who comes back is fenced."""

from __future__ import annotations

import asyncio
import fcntl
import signal
import sqlite3
from pathlib import Path

import pytest

from hermes.core.errors import Fenced, SessionBusy
from hermes.core.world import World
from hermes.journal import leases
from hermes.journal.journal import SqliteJournal
from hermes.journal.leases import LeaseOwner, is_alive
from tests.journal.processes import line, say, start
from tests.journal.samples import HandClock, journal_in, opened, said


def beats(home: Path) -> list[tuple[str, float]]:
    with sqlite3.connect(home / "hermes.db") as db:
        found = db.execute("SELECT owner, beat FROM owners ORDER BY owner").fetchall()
    db.close()
    return found


async def test_a_living_process_keeps_its_session(tmp_path: Path) -> None:
    worker = await start("hold", tmp_path, "one")
    assert await line(worker) == "held"
    async with journal_in(tmp_path, HandClock(beats(tmp_path)[0][1] + 29)) as journal:
        with pytest.raises(SessionBusy, match=f"process {worker.pid}"):
            await journal.acquire("one")
    await say(worker)
    assert await line(worker) == "written"
    await worker.wait()


async def test_a_process_that_was_stopped_for_long_comes_back_fenced(tmp_path: Path) -> None:
    worker = await start("hold", tmp_path, "one")
    assert await line(worker) == "held"
    # Not in the middle of a commit: one who is stopped there holds up everybody.
    with (tmp_path / "hermes.db.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        worker.send_signal(signal.SIGSTOP)
    async with journal_in(tmp_path, HandClock(beats(tmp_path)[0][1] + 31)) as journal:
        try:
            lease = await journal.acquire("one")
            assert lease.fence == 2
            await journal.append(lease, [said("Taken over")])
        finally:
            # Whatever happens, nobody is left standing.
            worker.send_signal(signal.SIGCONT)
        await say(worker)
        assert await line(worker) == "fenced"
        await worker.wait()
        await journal.append(lease, [said("And going on")])
        events = [record.event for record in await journal.read("one")]
        assert events == [opened(), said("Taken over"), said("And going on")]


async def test_a_fenced_owner_sees_what_others_wrote_when_it_owns_again(tmp_path: Path) -> None:
    clock, later = HandClock(), HandClock(HandClock().time + 31)
    async with journal_in(tmp_path, clock) as first, journal_in(tmp_path, later) as second:
        old, _ = await first.create("one", [opened()])
        new = await second.acquire("one")
        await second.append(new, [said("b"), said("c")])
        with pytest.raises(Fenced):
            await first.append(old, [said("lost")])
        await second.release(new)
        again = await first.acquire("one")
        assert again.fence == 3
        (record,) = await first.append(again, [said("d")])
        assert record.n == 4


async def test_an_owner_who_has_just_written_is_fenced_by_any_other_hand(tmp_path: Path) -> None:
    """What it knows of its lease ends with the first commit of somebody else."""
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened()])
        other, _ = await journal.create("two", [opened()])
        await journal.append(lease, [said("mine")])
        with sqlite3.connect(tmp_path / "hermes.db") as db:
            db.execute("UPDATE leases SET owner = 'somebody', fence = fence + 1 WHERE session = 1")
        db.close()
        with pytest.raises(Fenced):
            await journal.append(lease, [said("lost")])
        await journal.append(other, [said("still mine")])
        assert [record.event for record in await journal.read("one")] == [opened(), said("mine")]


async def test_a_lease_is_void_once_it_is_given_back(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened()])
        await journal.append(lease, [said("a")])
        await journal.release(lease)
        with pytest.raises(Fenced):
            await journal.append(lease, [said("lost")])
        again = await journal.acquire("one")
        with pytest.raises(Fenced):
            await journal.append(lease, [said("lost")])
        await journal.append(again, [said("b")])
        events = [record.event for record in await journal.read("one")]
        assert events == [opened(), said("a"), said("b")]


async def test_two_who_write_in_turns_give_every_record_an_id_of_its_own(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as first, journal_in(tmp_path) as second:
        one, _ = await first.create("one", [opened()])
        two, _ = await second.create("two", [opened()])
        for number in range(5):
            await first.append(one, [said(f"a{number}")])
            await second.append(two, [said(f"b{number}"), said(f"c{number}")])
        with sqlite3.connect(tmp_path / "hermes.db") as db:
            ids = [id for (id,) in db.execute("SELECT id FROM log ORDER BY id")]
        db.close()
        assert len(await first.read("one")) + len(await second.read("two")) == len(ids) == 17


async def test_a_closed_journal_gives_its_sessions_up(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as first:
        await first.create("one", [opened()])
    async with journal_in(tmp_path) as second:
        assert (await second.acquire("one")).fence == 2


async def test_a_short_run_writes_no_heartbeat_of_its_own(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        lease, _ = await journal.create("one", [opened()])
        for _ in range(4):
            clock.time += 1
            await journal.append(lease, [said("Hi")])
        assert [beat for _, beat in beats(tmp_path)] == [clock.time - 4]


async def test_a_heartbeat_rides_with_an_append(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        lease, _ = await journal.create("one", [opened()])
        clock.time += 6
        await journal.append(lease, [said("Hi")])
        assert [beat for _, beat in beats(tmp_path)] == [clock.time]


@pytest.mark.slow
async def test_an_idle_owner_beats_by_itself(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "hermes.db", World()) as journal:
        await journal.create("one", [opened()])
        ((_, first),) = beats(tmp_path)
        await asyncio.sleep(leases.HEARTBEAT_SECONDS + 1)
        ((_, second),) = beats(tmp_path)
        assert leases.HEARTBEAT_SECONDS <= second - first < leases.STALE_SECONDS


async def test_silent_owners_are_forgotten(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as first:
        await first.create("one", [opened()])
    clock.time += 61
    async with journal_in(tmp_path, clock) as second:
        await second.create("two", [opened()])
        assert [beat for _, beat in beats(tmp_path)] == [clock.time]


def test_lock_files_of_the_dead_are_swept_away(tmp_path: Path) -> None:
    (tmp_path / "123-dead.lock").touch()
    owner = LeaseOwner(tmp_path)
    owner.hold_lock()
    assert [path.name for path in tmp_path.iterdir()] == [f"{owner.name}.lock"]
    assert is_alive(tmp_path, owner.name)
    owner.release()
    assert not is_alive(tmp_path, owner.name)
    assert list(tmp_path.iterdir()) == []
