"""Derived tables: right as events come in, and the same when they are made anew."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hermes.core.events import (
    Archived,
    ModelCalled,
    ModelSwitched,
    SessionEnded,
    TitleChanged,
)
from hermes.core.messages import Usage
from hermes.journal.listing import (
    SessionFilter,
    SessionInfo,
    Spending,
    list_sessions,
    read_spending,
    session_info,
)
from hermes.journal.schema import DERIVED_TABLES
from tests.journal.samples import BEGINNING, HandClock, exchange, journal_in, opened, replied, said

DAY = 86_400


def derived(home: Path) -> dict[str, list[Any]]:
    db = sqlite3.connect(home / "hermes.db")
    found = {table: db.execute(f"SELECT * FROM {table}").fetchall() for table in DERIVED_TABLES}
    db.close()
    return found


async def fill(home: Path) -> None:
    clock = HandClock()
    async with journal_in(home, clock) as journal:
        lease, _ = await journal.create("one", [opened(), said("  What   is\nthis?  ", key="a")])
        clock.time += 10
        await journal.append(lease, exchange(1, 3), turn_id="turn_1")
        clock.time += DAY
        await journal.append(
            lease, [TitleChanged(title="Plan"), *exchange(2, 14)], turn_id="turn_2"
        )
        await journal.append(lease, [ModelSwitched(model="big-1", provider="other")])
        await journal.append(lease, [SessionEnded(reason="user_exit")])
        fork, _ = await journal.create("two", [opened("telegram", parent="one", parent_n=9)])
        await journal.append(fork, [said("Another way", key="b")])
        await journal.create("three", [opened("cron", principal="system")])
        away, _ = await journal.create("away", [opened("api"), Archived(away=True)])
        await journal.release(away)


async def test_a_session_in_the_list(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with journal_in(tmp_path) as journal:
        assert await session_info(journal, "one") == SessionInfo(
            id="one",
            title="Plan",
            source="cli",
            cwd="/work/plan",
            model="big-1",
            provider="other",
            principal="owner",
            preview="What is this?",
            started_at=BEGINNING,
            last_at=BEGINNING + 10 + DAY,
            ended_at=BEGINNING + 10 + DAY,
            end_reason="user_exit",
            last_n=25,
            message_count=7,
            tool_call_count=2,
            api_calls=4,
            usage=Usage(input=400, output=80, cache_read=20, cost=1.0),
        )
        two = await session_info(journal, "two")
        assert two is not None
        assert (two.parent, two.parent_n, two.last_n) == ("one", 9, 11)
        assert (two.preview, two.message_count) == ("Another way", 4)
        assert await session_info(journal, "nobody") is None


async def test_the_ledger_adds_up_by_day_and_cause(tmp_path: Path) -> None:
    clock = HandClock(DAY * 20_000.0)
    async with journal_in(tmp_path, clock) as journal:
        lease, _ = await journal.create("one", [opened()])
        priced = Usage(input=10, output=2, cost=0.5)
        await journal.append(
            lease,
            [
                ModelCalled(model="m", provider="p", cause="compaction"),
                replied("x", priced),
                ModelCalled(model="small-1", provider="acme"),
                replied("y", Usage(input=1)),
            ],
            turn_id="turn_1",
        )
        clock.time += DAY
        await journal.append(lease, [ModelCalled(model="m", provider="p", cause="title")])
        await journal.append(lease, [replied("z", priced)], turn_id="turn_2")
        found = await read_spending(journal)
        assert [(s.day, s.cause, s.model, s.calls, s.replies, s.unpriced) for s in found] == [
            ("2024-10-04", "compaction", "m", 1, 0, 0),
            ("2024-10-04", "chat", "small-1", 1, 1, 1),
            ("2024-10-04", "compaction", "small-1", 0, 1, 0),
            ("2024-10-05", "title", "m", 1, 0, 0),
            ("2024-10-05", "chat", "small-1", 0, 1, 0),
        ]
        assert [s.usage.cost for s in found] == [None, None, 0.5, None, 0.5]
        assert await read_spending(journal, since=DAY * 20_001.0) == found[3:]
        assert await read_spending(journal, session_id="nobody") == ()
        assert found[2] == Spending(
            session_id="one",
            day="2024-10-04",
            model="small-1",
            provider="acme",
            cause="compaction",
            principal="owner",
            job="one",
            calls=0,
            replies=1,
            usage=priced,
        )


@pytest.mark.parametrize(
    "statements",
    [
        [f"DROP TABLE {table}" for table in DERIVED_TABLES],
        ["DROP TABLE usage"],
        ["DELETE FROM summaries", "DELETE FROM usage", "DELETE FROM message_keys"],
        ["UPDATE meta SET value = 0 WHERE name = 'projections'", "UPDATE summaries SET title = ''"],
    ],
)
async def test_lost_tables_come_back_equal(tmp_path: Path, statements: list[str]) -> None:
    await fill(tmp_path)
    before = derived(tmp_path)
    db = sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()
    async with journal_in(tmp_path) as journal:
        assert len(await list_sessions(journal)) == 3
        assert derived(tmp_path) == before
        lease = await journal.acquire("one")
        assert await journal.append(lease, [said("Again", key="k1")]) == ()


async def test_a_lost_row_comes_back_when_its_session_is_owned(tmp_path: Path) -> None:
    await fill(tmp_path)
    before = derived(tmp_path)
    db = sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)
    db.execute("DELETE FROM summaries WHERE session = 1")
    db.close()
    async with journal_in(tmp_path) as journal:
        await journal.acquire("one")
        assert derived(tmp_path) == before


async def test_a_session_that_goes_on_is_not_ended(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened(), SessionEnded(reason="idle_timeout")])
        await journal.append(lease, [TitleChanged(title="Plan")])
        info = await session_info(journal, "one")
        assert info is not None
        assert info.end_reason == "idle_timeout"
        await journal.append(lease, [said("Back again")])
        info = await session_info(journal, "one")
        assert info is not None
        assert (info.ended_at, info.end_reason) == (None, "")


async def test_putting_a_session_away_is_not_using_it(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        lease, _ = await journal.create("one", [opened(), SessionEnded(reason="user_exit")])
        clock.time += 60
        await journal.append(lease, [Archived(away=True)])
        info = await session_info(journal, "one")
        assert info is not None
        assert (info.archived, info.last_at, info.end_reason) == (True, BEGINNING, "user_exit")
        await journal.append(lease, [said("Back again")])
        info = await session_info(journal, "one")
        assert info is not None
        assert (info.archived, info.ended_at) == (True, None)


@pytest.mark.parametrize(
    ("archived", "ids"), [(False, ["two"]), (True, ["one"]), (None, ["two", "one"])]
)
async def test_what_was_put_away_is_listed_on_request_only(
    tmp_path: Path, archived: bool | None, ids: list[str]
) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.create("one", [opened(), Archived(away=True)])
        await journal.create("two", [opened(), Archived(away=True), Archived(away=False)])
        wanted = SessionFilter(archived=archived)
        assert [info.id for info in await list_sessions(journal, wanted)] == ids
        assert [info.id for info in await list_sessions(journal)] == ["two"]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (SessionFilter(), ["three", "two", "one"]),
        (SessionFilter(source="cli"), ["one"]),
        (SessionFilter(exclude_sources=("cli", "cron")), ["two"]),
        (SessionFilter(title="LAN"), ["one"]),
        (SessionFilter(cwd="plan", min_messages=1), ["two", "one"]),
        (SessionFilter(max_messages=0), ["three"]),
        (SessionFilter(model="big-1", provider="other"), ["one"]),
        (SessionFilter(ended=False), ["three", "two"]),
        (SessionFilter(end_reason="user_exit"), ["one"]),
        (SessionFilter(principal="system"), ["three"]),
        (SessionFilter(archived=True), ["away"]),
        (SessionFilter(before=BEGINNING), []),
        (SessionFilter(after=BEGINNING), ["three", "two", "one"]),
    ],
)
async def test_the_list_is_filtered(tmp_path: Path, wanted: SessionFilter, ids: list[str]) -> None:
    await fill(tmp_path)
    async with journal_in(tmp_path) as journal:
        assert [info.id for info in await list_sessions(journal, wanted)] == ids


async def test_the_list_is_cut(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with journal_in(tmp_path) as journal:
        assert [info.id for info in await list_sessions(journal, limit=2)] == ["three", "two"]
