"""Whatever happens to the index file, a search answers, and the file is whole again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.journal.index import upkeep
from hermes.journal.index.file import discard
from hermes.journal.index.filters import Filters
from hermes.journal.index.search import MessageHit, SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.index.upkeep import Sizes
from tests.journal.index.diary import Diary, read, write

QUERIES = (
    "topic7",
    "opic11",
    "common",
    '"about topic3"',
    "数据",
    "note comm*",
    "nothing like this",
)


def fill(diary: Diary, count: int = 700) -> None:
    diary.say_all([f"note {n} about topic{n % 20} common 数据{n % 9}库" for n in range(count)])


async def answers(index: SearchIndex) -> list[tuple[MessageHit, ...]]:
    return [await index.search(query, limit=5) for query in QUERIES]


async def test_a_deleted_file_is_made_again(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    fill(diary)
    before = await answers(index)
    assert [len(hits) for hits in before] == [5, 5, 5, 5, 5, 5, 0]
    discard(index_path)
    assert await answers(index) == before
    assert await index.check() == []


def flip(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place] ^= 1 << chance.randrange(8)


def overwrite(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place : place + 600] = chance.randbytes(len(data[place : place + 600]))


def zero_a_page(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) // 4096) * 4096
    data[place : place + 4096] = bytes(4096)


def truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def swap_pages(data: bytearray, chance: random.Random) -> None:
    one, other = (chance.randrange(len(data) // 4096) * 4096 for _ in range(2))
    first, second = data[one : one + 4096], data[other : other + 4096]
    data[one : one + 4096], data[other : other + 4096] = second, first


Spoil = Callable[[bytearray, random.Random], None]


@pytest.mark.parametrize("spoil", [flip, overwrite, zero_a_page, truncate, swap_pages])
@pytest.mark.parametrize("times", [6, pytest.param(400, marks=pytest.mark.slow)])
async def test_answers_do_not_change_when_the_file_is_spoilt(
    diary: Diary,
    index_path: Path,
    caplog: pytest.LogCaptureFixture,
    spoil: Spoil,
    times: int,
) -> None:
    sizes = Sizes(draft=128, segment=256)
    index = SearchIndex(index_path, JournalFile(diary.path), sizes=sizes)
    fill(diary)
    await index.catch_up()
    before = await answers(index)
    whole = read(index_path)
    chance = random.Random(f"{spoil.__name__} {times}")
    for _ in range(times):
        data = bytearray(whole)
        spoil(data, chance)
        write(index_path, data)
        caplog.clear()
        assert await answers(index) == before
        assert len(caplog.records) <= 1
    assert await index.search("topic7") != ()


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
async def test_any_byte_of_the_first_page_may_be_wrong(
    diary: Diary, index: SearchIndex, index_path: Path, step: int
) -> None:
    fill(diary, 60)
    before = await answers(index)
    whole = read(index_path)
    for place in [*range(0, 100, step), *range(100, 4096, 50 * step)]:
        data = bytearray(whole)
        data[place] ^= 0xFF
        write(index_path, data)
        assert await index.search("topic7", limit=5) == before[0]
        assert len(await index.search("common", limit=200)) == 60


async def test_names_in_the_file_need_not_be_text_any_more(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    fill(diary, 60)
    before = await answers(index)
    # A table of such a name that is not made as tables are.
    spoilt = read(index_path).replace(b"tableblocks", b"tableb\xbdocks")
    spoilt = spoilt.replace(b"CREATE TABLE blocks", b"CREATE TXBLE blocks")
    assert spoilt.count(b"\xbdocks") == spoilt.count(b"TXBLE") == 1
    write(index_path, spoilt)
    assert await answers(index) == before
    assert await index.check() == []


async def test_damage_is_told_once_and_the_index_is_sound_afterwards(
    diary: Diary, index: SearchIndex, index_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(diary)
    await index.catch_up()
    write(index_path, b"\0" * 10_000)
    assert await index.check() != []
    with caplog.at_level(logging.INFO):
        assert len(await index.search("topic7")) == 10
    (record,) = caplog.records
    assert record.getMessage() == "the search index was damaged and is rebuilt"
    assert await index.check() == []


async def test_new_messages_come_into_a_spoilt_file(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    fill(diary, 100)
    await index.catch_up()
    chance = random.Random(4)
    for number in range(10):
        data = bytearray(read(index_path))
        overwrite(data, chance)
        write(index_path, data)
        wanted = diary.say(f"a fresh thought{number}")
        assert [hit.event_id for hit in await index.search(f"thought{number}")] == [wanted]
        assert len(await index.search("common", limit=200)) == 100


async def test_check_names_what_is_wrong(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    fill(diary)
    await index.catch_up()
    assert await index.check() == []
    data = bytearray(read(index_path))
    middle = data.index(b"topic11")
    data[middle] ^= 1
    write(index_path, data)
    problems = await index.check()
    assert any("checksum" in problem for problem in problems)


async def test_rebuild_makes_the_file_anew(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    fill(diary)
    before = await answers(index)
    write(index_path, read(index_path) + b"one byte too many")
    await index.rebuild()
    assert not read(index_path).endswith(b"too many")
    assert await index.check() == []
    assert await answers(index) == before


async def test_without_a_place_for_the_file_the_journal_is_read(
    diary: Diary, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(diary, 50)
    (tmp_path / "blocked").write_text("a file where a folder should be")
    index = SearchIndex(tmp_path / "blocked" / "index.db", JournalFile(diary.path))
    assert len(await index.search("topic7")) == 3
    assert len(await index.search("opic7")) == 3
    assert len(await index.search('"about topic3"')) == 3
    assert len(await index.search("数据")) == 10
    assert await index.search("nothing") == ()
    one_session = Filters(sessions=frozenset({"s1"}), since=0)
    assert len(await index.search("common", one_session, limit=100)) == 50
    await index.catch_up()
    assert [record.getMessage() for record in caplog.records] == [
        "the search index cannot be used; searching the journal itself"
    ]


async def test_a_file_that_another_process_writes_is_no_damage(
    diary: Diary, index: SearchIndex, index_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(diary, 50)
    await index.catch_up()
    wanted = diary.say("one more thought")
    with upkeep.sole_writer(index_path):
        impatient = SearchIndex(index_path, JournalFile(diary.path), patience_seconds=0.05)
        assert [hit.event_id for hit in await impatient.search("thought")] == [wanted]
    assert not caplog.records
