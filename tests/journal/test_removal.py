"""Deleting, pruning and archiving: only what nobody needs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hermes.config.session_settings import RetentionSettings
from hermes.core.errors import Fenced, NotFound, SessionBusy, UsageError
from hermes.core.events import SessionEnded, TitleChanged
from hermes.journal.export import all_ids, export_lines
from hermes.journal.import_ import import_file
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import SessionFilter, parse_age
from hermes.journal.sessions import fork, lineage
from hermes.journal.upkeep import (
    PruneResult,
    apply_retention,
    archive,
    delete,
    prune,
    stats,
)
from hermes.journal.verify import verify
from tests.journal.samples import HandClock, exchange, journal_in, opened, said

DAY = 86_400.0


async def ended(journal: SqliteJournal, session_id: str, source: str = "cli") -> None:
    events = [opened(source), *exchange(1, 2), SessionEnded(reason="user_exit")]
    lease, _ = await journal.create(session_id, events)
    await journal.release(lease)


async def test_a_deleted_session_leaves_nothing_behind(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await ended(journal, "one")
        await ended(journal, "two")
        await delete(journal, "one")
        assert await all_ids(journal) == ("two",)
        with pytest.raises(NotFound):
            await journal.read("one")
        with pytest.raises(NotFound):
            await delete(journal, "one")

        def left(db: sqlite3.Connection) -> list[int]:
            tables = "log summaries usage message_keys leases inbox quarantine sessions".split()
            query = "SELECT count(*) FROM {} WHERE session = 1"
            return [db.execute(query.format(t)).fetchone()[0] for t in tables]

        assert await journal.reading(left) == [0] * 8
        query = "SELECT session, id FROM removed"
        assert await journal.reading(lambda db: db.execute(query).fetchall()) == [(1, "one")]
        assert await verify(journal) == ()


async def test_ids_of_records_and_sessions_are_not_used_again(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await ended(journal, "one")
        await ended(journal, "two")
        newest = "SELECT max(id), max(session) FROM log"
        before = await journal.reading(lambda db: db.execute(newest).fetchone())
        await delete(journal, "two")
        await journal.create("three", [opened()])
        after = await journal.reading(lambda db: db.execute(newest).fetchone())
        assert after == (before[0] + 1, before[1] + 1)


async def test_a_session_somebody_is_in_is_not_deleted(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal, journal_in(tmp_path) as other:
        lease, _ = await journal.create("one", [opened()])
        for somebody in (journal, other):
            with pytest.raises(SessionBusy):
                await delete(somebody, "one")
        await journal.append(lease, [said("Still here")])


async def test_an_owner_whose_session_was_deleted_is_fenced(tmp_path: Path) -> None:
    clock, later = HandClock(), HandClock(HandClock().time + 31)
    async with journal_in(tmp_path, clock) as first, journal_in(tmp_path, later) as second:
        lease, _ = await first.create("one", [opened()])
        await delete(second, "one")
        await second.create("one", [opened()])
        with pytest.raises(Fenced):
            await first.append(lease, [said("lost")])


async def test_a_parent_stays_while_a_fork_needs_it(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await ended(journal, "one")
        copy = await fork(journal, "one", at=5)
        with pytest.raises(UsageError, match=copy):
            await delete(journal, "one")
        with pytest.raises(UsageError, match=copy):
            await archive(journal, "one", tmp_path / "archive")
        assert not (tmp_path / "archive").exists()
        await delete(journal, copy)
        await delete(journal, "one")
        assert await all_ids(journal) == ()


async def test_a_child_that_shares_nothing_outlives_its_parent(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await ended(journal, "one")
        _, records = await journal.create("two", [opened("subagent", parent="one")])
        assert (await lineage(journal, "two")).ancestors == ("one",)
        await delete(journal, "one")
        assert (await lineage(journal, "two")).ancestors == ()
        assert await journal.read("two") == records


async def test_pruning_takes_old_sessions_ended_or_just_left(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        await ended(journal, "old")
        lease, _ = await journal.create("open", [opened()])
        await journal.release(lease)
        await ended(journal, "telegram", source="telegram")
        clock.time += 60 * DAY
        await ended(journal, "young")
        clock.time += 31 * DAY
        older = parse_age("90")
        only = SessionFilter(source="cli", ended=True)
        rehearsed = await prune(journal, older_than_seconds=older, wanted=only, dry_run=True)
        assert rehearsed == PruneResult(removed=("old",))
        assert set(await all_ids(journal)) == {"old", "open", "telegram", "young"}
        assert await prune(journal, older_than_seconds=older, wanted=only) == rehearsed
        assert set(await all_ids(journal)) == {"open", "telegram", "young"}
        done = await prune(journal, older_than_seconds=older, wanted=SessionFilter(source="cli"))
        assert done == PruneResult(removed=("open",))


async def test_pruning_spares_parents_whose_forks_live(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        await ended(journal, "one")
        await ended(journal, "two")
        dead = await fork(journal, "two", at=4)
        lease = await journal.acquire(dead)
        await journal.append(lease, [SessionEnded(reason="user_exit")])
        await journal.release(lease)
        clock.time += 100 * DAY
        living = await fork(journal, "one", at=5)
        before = await journal.read(living)
        for dry_run in (True, False):
            done = await prune(journal, older_than_seconds=90 * DAY, dry_run=dry_run)
            assert done == PruneResult(removed=(dead, "two"), kept=("one",))
        assert await journal.read(living) == before


async def test_an_archived_session_comes_back_as_it_was(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        events = [
            opened(),
            TitleChanged(title="Plan"),
            *exchange(1, 3),
            SessionEnded(reason="done"),
        ]
        lease, records = await journal.create("one", events)
        await journal.release(lease)
        before = [line async for line in export_lines(journal, ["one"])]
        path = await archive(journal, "one", tmp_path / "archive")
        assert path == tmp_path / "archive" / "one.jsonl.gz"
        assert path.stat().st_mode & 0o777 == 0o600
        assert await all_ids(journal) == ()
        await import_file(journal, path)
        assert await journal.read("one") == records
        assert [line async for line in export_lines(journal, ["one"])] == before
        assert await verify(journal) == ()


async def test_retention_is_off_unless_it_is_wished(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        await ended(journal, "one")
        clock.time += 1_000 * DAY
        done = await apply_retention(journal, RetentionSettings(), tmp_path)
        assert done is None
        assert await all_ids(journal) == ("one",)


async def test_retention_says_what_it_did_and_waits_for_its_time(tmp_path: Path) -> None:
    clock = HandClock()
    settings, folder = RetentionSettings(mode="archive", days=30), tmp_path / "archive"
    async with journal_in(tmp_path, clock) as journal:
        await ended(journal, "one")
        clock.time += 31 * DAY
        await ended(journal, "two")
        done = PruneResult(removed=("one",))
        assert await apply_retention(journal, settings, folder) == done
        assert (tmp_path / "archive" / "one.jsonl.gz").exists()
        assert await apply_retention(journal, settings, folder) is None
        clock.time += DAY
        assert await apply_retention(journal, settings, folder) == PruneResult()
        assert (await stats(journal)).sessions == 1
