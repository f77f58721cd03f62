"""What is forgotten is not in the file any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import JournalError
from hermes.journal.index import upkeep
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.index.upkeep import Sizes
from tests.journal.index.diary import Diary, read, write


def bytes_of(path: Path) -> bytes:
    """All that lies in the file and beside it."""
    return b"".join(p.read_bytes() for p in path.parent.glob(path.name + "*"))


async def test_a_session_is_forgotten(diary: Diary, index: SearchIndex, index_path: Path) -> None:
    diary.say_all(["harmless words"] * 10, session="kept")
    diary.say("the password is xylophone77", session="gone")
    diary.say_all(["more harmless words"] * 10, session="kept")
    assert len(await index.search("xylophone77")) == 1
    assert b"xylophone77" in bytes_of(index_path)
    diary.delete_session("gone")
    await index.forget(sessions=["gone"])
    assert b"xylophone77" not in bytes_of(index_path)
    assert await index.search("xylophone77") == ()
    assert len(await index.search("harmless", limit=50)) == 20
    assert await index.check() == []


async def test_a_word_of_a_closed_segment_is_forgotten(diary: Diary, index_path: Path) -> None:
    sizes = Sizes(draft=64, segment=256)
    index = SearchIndex(index_path, JournalFile(diary.path), sizes=sizes)
    diary.say_all([f"note {n}" for n in range(400)], session="kept")
    diary.say_all(["xylophone77 and shared88"], session="gone")
    diary.say_all([f"note {n} shared88" for n in range(400)], session="kept")
    await index.catch_up()
    assert len(await index.search("ylophone7")) == 1
    diary.delete_session("gone")
    await index.forget(sessions=["gone"])
    assert b"xylophone77" not in bytes_of(index_path)
    assert await index.search("ylophone7") == ()
    assert len(await index.search("hared8", limit=1_000)) == 400
    assert await index.check() == []


async def test_everything_is_forgotten(diary: Diary, index: SearchIndex, index_path: Path) -> None:
    diary.say_all(["xylophone77"] * 30, session="gone")
    await index.catch_up()
    diary.delete_session("gone")
    await index.forget(sessions=["gone"])
    assert b"xylophone77" not in bytes_of(index_path)
    wanted = diary.say("a new beginning", session="new")
    assert [hit.event_id for hit in await index.search("beginning")] == [wanted]


async def test_ids_that_are_used_again_are_found_again(diary: Diary, index: SearchIndex) -> None:
    diary.say_all(["kept"] * 3, session="kept")
    last = diary.say_all(["gone"] * 3, session="gone")[-1]
    await index.catch_up()
    diary.delete_session("gone")
    await index.forget(sessions=["gone"])
    again = diary.say_all(["again"] * 4, session="new")
    assert last in again
    assert {hit.event_id for hit in await index.search("again")} == set(again)


async def test_nothing_is_done_without_an_index(index: SearchIndex, index_path: Path) -> None:
    await index.forget(sessions=["gone"])
    assert bytes_of(index_path) == b""


async def test_a_damaged_file_is_forgotten_as_a_whole(
    diary: Diary, index: SearchIndex, index_path: Path
) -> None:
    diary.say("xylophone77", session="gone")
    await index.catch_up()
    write(index_path, read(index_path).replace(b"xylophone77", b"xylophone78"))
    await index.forget(sessions=["gone"])
    assert b"xylophone7" not in bytes_of(index_path)


async def test_when_another_process_keeps_writing_the_file_is_given_up(
    diary: Diary, index_path: Path
) -> None:
    diary.say("xylophone77", session="gone")
    index = SearchIndex(index_path, JournalFile(diary.path), patience_seconds=0.05)
    await index.catch_up()
    with upkeep.sole_writer(index_path):
        await index.forget(sessions=["gone"])
    assert b"xylophone77" not in bytes_of(index_path)


async def test_it_is_said_when_nothing_can_be_forgotten(diary: Diary, tmp_path: Path) -> None:
    (tmp_path / "index.db").mkdir()
    index = SearchIndex(tmp_path / "index.db", JournalFile(diary.path))
    with pytest.raises(JournalError, match="may still be in the search index"):
        await index.forget(sessions=["gone"])
