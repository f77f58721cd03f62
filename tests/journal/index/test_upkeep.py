"""The index keeps in step with the journal."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hermes.journal.index import upkeep
from hermes.journal.index.build import MOST_DOCS
from hermes.journal.index.file import IndexFile, IndexManifest, JournalPosition, SegmentInfo
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.segment import Segment
from hermes.journal.index.source import JournalFile
from hermes.journal.index.upkeep import Sizes
from tests.journal.index.diary import Diary

SEARCH = """
import asyncio, sys
from pathlib import Path
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
index = SearchIndex(Path(sys.argv[2]), JournalFile(Path(sys.argv[1])))
print(len(asyncio.run(index.search(sys.argv[3], limit=1000))), flush=True)
"""


def segment(docs: int, *, closed: bool = False) -> SegmentInfo:
    place = JournalPosition(id=1, session_id="s", n=1)
    return SegmentInfo(
        number=docs, docs=docs, leaves=1, oldest=0, newest=0, last=place, closed=closed
    )


def due(*sizes: int, thorough: bool = False) -> list[int]:
    infos = [segment(size, closed=size > MOST_DOCS // 2) for size in sizes]
    return [info.docs for info in upkeep.merge_due(infos, Sizes(), thorough=thorough)]


def manifest(path: Path) -> IndexManifest:
    with closing(IndexFile(path)) as file:
        return file.manifest()


def indexed_ids(path: Path) -> list[int]:
    with closing(IndexFile(path)) as file:
        infos = file.manifest().segments
        return [id for info in infos for id in Segment(file, info).ids()]


def spawned(diary: Diary, index_path: Path, query: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SEARCH, str(diary.path), str(index_path), query]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def test_few_segments_are_left_alone() -> None:
    assert due() == []
    assert due(1, 1, 1) == []
    assert due(100, 50, 20, 9, 5, 3, 2, 1) == []


def test_the_newest_small_segments_are_merged() -> None:
    assert due(500, 60, 9, 1, 1, 1, 1, 1) == [1, 1, 1, 1, 1]
    assert due(4, 4, 1, 1, 1, 1, 1, 1) == [4, 4, 1, 1, 1, 1, 1, 1]


def test_a_search_does_not_wait_for_a_large_merge() -> None:
    assert due(900, 900, 900, 900, 300, 300, 300, 300) == [300, 300, 300]
    assert due(*[900] * 8) == []
    assert due(*[900] * 8, thorough=True) == [900] * 8
    assert len(due(*[900] * 40)) > 30


def test_what_fills_a_segment_is_closed() -> None:
    assert due(MOST_DOCS, *[16_384] * 4, thorough=True) == [16_384] * 4
    assert due(MOST_DOCS, *[16_384] * 3, thorough=True) == []
    assert due(*[30_000] * 3, thorough=True) == [30_000] * 2


async def test_single_messages_make_few_segments(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    for number in range(200):
        diary.say(f"message {number}")
        await index.search("message")
    assert len(manifest(index_path).segments) <= 16
    assert indexed_ids(index_path) == list(range(1, 201))
    assert await index.check() == []


async def test_many_messages_are_taken_in_by_batches(diary: Diary, index_path: Path) -> None:
    index = SearchIndex(index_path, JournalFile(diary.path), sizes=Sizes(draft=300))
    ids = diary.say_all([f"message {number} word{number % 7}" for number in range(3_000)])
    await index.catch_up()
    assert indexed_ids(index_path) == ids
    assert len(await index.search("word3", limit=1_000)) == len(range(3, 3_000, 7))


async def test_closed_segments_are_searched_by_parts_of_words(
    diary: Diary, index_path: Path
) -> None:
    sizes = Sizes(draft=256, segment=1_024)
    index = SearchIndex(index_path, JournalFile(diary.path), sizes=sizes)
    texts = [f"message {number} about abc{number}xyz 数据{number}" for number in range(5_000)]
    ids = diary.say_all(texts)
    await index.catch_up()
    state = manifest(index_path)
    assert len([info for info in state.segments if info.closed]) >= 4
    assert len(state.words) >= 4
    for number in (0, 700, 1_500, 4_999):
        hits = await index.search(f"c{number}xy", limit=1)
        assert [hit.event_id for hit in hits] == [ids[number]]
    assert await index.search("c5000xy") == ()
    assert await index.check() == []


async def test_an_index_of_another_journal_is_made_anew(
    diary: Diary, index: SearchIndex, index_path: Path, tmp_path: Path
) -> None:
    diary.say_all(["the old journal"] * 20)
    assert len(await index.search("old", limit=50)) == 20
    other = Diary(tmp_path / "other.db")
    other.say_all(["the new journal"] * 30, session="another")
    index = SearchIndex(index_path, JournalFile(other.path))
    assert await index.search("old") == ()
    assert len(await index.search("new", limit=50)) == 30
    other.close()


async def test_a_journal_that_was_set_back_is_followed(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    diary.say_all(["kept"] * 5, session="kept")
    await index.search("kept")
    diary.say_all(["lost"] * 5, session="lost")
    assert len(await index.search("lost")) == 5
    diary.delete_session("lost")
    diary.say_all(["fresh"] * 3, session="fresh")
    assert len(await index.search("fresh")) == 3
    assert indexed_ids(index_path) == list(range(1, 9))


async def test_processes_do_not_index_the_same_rows_twice(diary: Diary, index_path: Path) -> None:
    ids = diary.say_all([f"note {number}" for number in range(6_000)])
    processes = [spawned(diary, index_path, "note") for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert outputs == [b"960\n"] * 3 or outputs == [b"1000\n"] * 3
    assert indexed_ids(index_path) == ids


def killed(diary: Diary, index_path: Path, after_seconds: float) -> None:
    """A process that searches, and is killed in the middle of it."""
    with spawned(diary, index_path, "note") as process:
        time.sleep(after_seconds)
        process.kill()


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(9))])
async def test_a_killed_process_leaves_an_index_that_can_be_used(
    diary: Diary, index: SearchIndex, index_path: Path, seed: int
) -> None:
    ids = diary.say_all([f"note {number} topic{number}" for number in range(12_000)])
    chance = random.Random(seed)
    for _ in range(4):
        killed(diary, index_path, 0.2 + chance.random() * 0.6)
    (hit,) = await index.search("topic777", limit=1)
    assert hit.event_id == ids[777]
    assert indexed_ids(index_path) == ids
    assert await index.check() == []


async def test_a_search_waits_for_the_process_that_indexes(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    wanted = diary.say("an urgent note")
    with upkeep.sole_writer(index_path) as mine:
        assert mine
        impatient = SearchIndex(index_path, JournalFile(diary.path), patience_seconds=0.1)
        hits = await impatient.search("urgent")
    assert [hit.event_id for hit in hits] == [wanted]
    assert [hit.event_id for hit in await index.search("urgent")] == [wanted]
    assert indexed_ids(index_path) == [wanted]
