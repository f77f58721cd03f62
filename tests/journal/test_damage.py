"""Damage costs what is damaged and nothing else."""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.core.errors import NotFound
from hermes.core.events import CallSettled, Record
from hermes.core.messages import Usage
from hermes.core.ports import Lease
from hermes.journal.verify import VerifyProblem, repair_journal, verify
from tests.journal.samples import HandClock, exchange, journal_in, opened, said

PAGE = 4096
Records = dict[str, tuple[Record, ...]]


async def filled(home: Path, sessions: int = 3, messages: int = 12) -> Records:
    async with journal_in(home) as journal:
        leases: dict[str, Lease] = {}
        for number in range(sessions):
            leases[f"s{number}"], _ = await journal.create(f"s{number}", [opened()])
        for number in range(messages):
            for name, lease in leases.items():
                text = f"{name} says {number}: {'x' * 300}"
                await journal.append(lease, [said(text)], turn_id="turn_1")
        return {name: await journal.read(name) for name in leases}


def change(home: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(home / "hermes.db") as db:
        db.execute(statement, values)
    db.close()


def flip(home: Path, needle: bytes, change: Callable[[int], int]) -> None:
    """Change one byte of the database file, right after the needle."""
    path = home / "hermes.db"
    data = bytearray(path.read_bytes())
    place = data.index(needle) + len(needle)
    data[place] = change(data[place])
    path.write_bytes(data)


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
async def test_a_flipped_byte_names_exactly_its_record(tmp_path: Path, mask: int) -> None:
    before = await filled(tmp_path)
    flip(tmp_path, b"s1 says 7: xx", lambda byte: byte ^ mask)
    async with journal_in(tmp_path) as journal:
        problems = await verify(journal)
        assert [(problem.session_id, problem.n) for problem in problems] == [("s1", 9)]
        for name, records in before.items():
            kept = tuple(r for r in records if (name, r.n) != ("s1", 9))
            assert await journal.read(name) == kept
            lease = await journal.acquire(name)
            (record,) = await journal.append(lease, [said("On we go")])
            assert record.n == 14
        assert [(p.session_id, p.n) for p in await verify(journal)] == [("s1", 9)]


async def test_a_changed_hash_names_only_its_own_record(tmp_path: Path) -> None:
    await filled(tmp_path)
    change(tmp_path, "UPDATE log SET hash = ? WHERE session = 2 AND n = 5", b"0" * 16)
    async with journal_in(tmp_path) as journal:
        assert [(p.session_id, p.n) for p in await verify(journal)] == [("s1", 5)]


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE log SET turn_id = 'turn_2' WHERE session = 2 AND n = 5",
        "UPDATE log SET at = at + 1 WHERE session = 2 AND n = 5",
        "UPDATE log SET rest = replace(rest, 's1', 's2') WHERE session = 2 AND n = 5",
        "UPDATE log SET shape = 5, rest = ',\"x\":1' WHERE session = 2 AND n = 5",
        "UPDATE log SET shape = 777 WHERE session = 2 AND n = 5",
        "UPDATE log SET at = 'noon' WHERE session = 2 AND n = 5",
    ],
)
async def test_every_edit_is_detected(tmp_path: Path, edit: str) -> None:
    await filled(tmp_path)
    change(tmp_path, edit)
    async with journal_in(tmp_path) as journal:
        assert [(p.session_id, p.n) for p in await verify(journal)] == [("s1", 5)]
        assert [record.n for record in await journal.read("s1")] == [1, 2, 3, 4, *range(6, 14)]


async def test_missing_records_are_named(tmp_path: Path) -> None:
    await filled(tmp_path)
    change(tmp_path, "DELETE FROM log WHERE session = 2 AND n IN (4, 5, 13)")
    async with journal_in(tmp_path) as journal:
        gone = [VerifyProblem(session_id="s1", n=n, why="it is missing") for n in (4, 5, 13)]
        assert await verify(journal) == tuple(gone)
        assert await verify(journal, "s1") == tuple(gone)
        assert await verify(journal, "s0") == ()
        with pytest.raises(NotFound):
            await verify(journal, "nobody")


async def test_two_records_that_changed_places_are_named(tmp_path: Path) -> None:
    await filled(tmp_path)
    for old, new in ((4, 104), (5, 4), (104, 5)):
        change(tmp_path, "UPDATE log SET n = ? WHERE session = 2 AND n = ?", new, old)
    async with journal_in(tmp_path) as journal:
        assert {p.n for p in await verify(journal)} >= {4, 5}


async def test_an_event_that_was_written_twice_is_named_and_set_aside(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened()])
        await journal.append(lease, exchange(1, 2), turn_id="turn_1")
        batch = exchange(2, 12)
        ending = [CallSettled(call="call_9", usage=Usage()), *batch[-2:]]
        await journal.append(lease, [*batch[:-2], *ending], turn_id="turn_2")
        assert await verify(journal) == ()
        before = await journal.read("one")
        # The clock of this test stands still, so this is the same batch again.
        await journal.append(lease, ending, turn_id="turn_2")
        problems = await verify(journal)
        assert problems == tuple(
            VerifyProblem(session_id="one", n=n, why=f"it repeats record {n - 3}")
            for n in (23, 24, 25)
        )
        assert await journal.read("one") == before


async def test_a_message_that_was_written_twice_before_its_turn_is_named(tmp_path: Path) -> None:
    async with journal_in(tmp_path, HandClock(1_700_000_000.123456)) as journal:
        lease, _ = await journal.create("one", [opened()])
        await journal.append(lease, [said("yes")])
        assert await verify(journal) == ()
        # The clock of this test stands still, so this is the same message again.
        await journal.append(lease, [said("yes")])
        assert await verify(journal) == (
            VerifyProblem(session_id="one", n=3, why="it repeats record 2"),
        )


async def test_messages_of_the_same_whole_second_are_different(tmp_path: Path) -> None:
    async with journal_in(tmp_path, HandClock(1_700_000_000.0)) as journal:
        lease, _ = await journal.create("one", [opened()])
        await journal.append(lease, [said("yes"), said("yes")])
        assert await verify(journal) == ()


async def test_a_damaged_record_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path)
    change(tmp_path, "UPDATE log SET rest = rest || '\"' WHERE session = 2 AND n = 5")
    with caplog.at_level(logging.WARNING, "hermes.journal"):
        async with journal_in(tmp_path) as journal:
            for _ in range(3):
                assert len(await journal.read("s1")) == 12
        async with journal_in(tmp_path) as journal:
            assert len(await journal.read("s1")) == 12
    assert [record.message for record in caplog.records] == ["a damaged record was quarantined"]


async def test_a_record_that_is_sound_again_comes_back(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    edit = "UPDATE log SET rest = replace(rest, ?, ?) WHERE session = 2 AND n = 5"
    change(tmp_path, edit, "s1", "XX")
    async with journal_in(tmp_path) as journal:
        assert len(await verify(journal)) == 1
        assert len(await journal.read("s1")) == 12
    change(tmp_path, edit, "XX", "s1")
    async with journal_in(tmp_path) as journal:
        assert await verify(journal) == ()
        assert await journal.read("s1") == before["s1"]


async def test_damaged_shapes_are_mended(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    change(tmp_path, "UPDATE shapes SET head = 'x' || head, kind = 'rewound' WHERE shape > 5")
    async with journal_in(tmp_path) as journal:
        assert await journal.read("s1") == before["s1"]
        assert await verify(journal) == ()


async def test_a_long_record_survives_the_loss_of_the_tree(tmp_path: Path) -> None:
    texts = ["y" * size for size in (10, 4_000, 4_100, 30_000)]
    async with journal_in(tmp_path) as journal:
        _, records = await journal.create("one", [opened(), *(said(text) for text in texts)])
    wreck(tmp_path, page_of(tmp_path, "log"))
    async with journal_in(tmp_path) as journal:
        assert await journal.read("one") == records
        assert await verify(journal) == ()


def page_of(home: Path, table: str) -> int:
    db = sqlite3.connect(home / "hermes.db")
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    db.close()
    return int(page)


def wreck(home: Path, page: int) -> None:
    path = home / "hermes.db"
    data = bytearray(path.read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = random.Random(page).randbytes(PAGE)
    path.write_bytes(data)


async def test_any_lost_page_costs_at_most_what_is_on_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    before = await filled(source)
    data = (source / "hermes.db").read_bytes()
    most = PAGE // 300
    for page in range(1, len(data) // PAGE + 1):
        home = tmp_path / f"page{page}"
        home.mkdir()
        (home / "hermes.db").write_bytes(data)
        wreck(home, page)
        async with journal_in(home) as journal:
            lost = 0
            for name, records in before.items():
                found = await journal.read(name)
                assert set(found) <= set(records)
                lost += len(records) - len(found)
                lease = await journal.acquire(name)
                (record,) = await journal.append(lease, [said("On we go")])
                assert (await journal.read(name))[-1] == record
            assert lost <= most, f"page {page}"
            assert len(await repair_journal(journal)) == lost


async def test_damage_in_one_session_does_not_reach_its_neighbours_forks(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        _, parent = await journal.create("one", [opened(), *exchange(1, 2)])
        _, own = await journal.create("two", [opened(parent="one", parent_n=6), said("b")])
    change(tmp_path, "UPDATE log SET rest = '?' WHERE session = 1 AND n = 3")
    async with journal_in(tmp_path) as journal:
        assert await journal.read("two") == (*parent[:2], *parent[3:6], *own)
