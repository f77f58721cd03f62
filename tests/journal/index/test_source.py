"""Reading the journal for the index."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.core.errors import JournalError
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile, text_of
from tests.journal.index.diary import NOON, Diary, turn_started

PAGE = 4096


def test_rows_come_in_order_and_only_those_with_words(diary: Diary) -> None:
    diary.say("one", session="a")
    diary.add(turn_started(), session="a")
    diary.say("two", session="b", role="assistant")
    diary.say("three", session="a", role="tool")
    with closing(JournalFile(diary.path)) as source:
        rows = source.rows(0, 10)
        assert [(r.id, r.session_id, r.n, r.kind, r.at, text_of(r)) for r in rows] == [
            (1, "a", 1, "message_received", NOON, "one"),
            (3, "b", 1, "reply_added", NOON + 120, "two"),
            (4, "a", 3, "tool_finished", NOON + 180, "three"),
        ]
        assert source.rows(0, 2) == rows[:2]
        assert source.rows(3, 2) == rows[2:]
        assert sorted(source.fetch([4, 99, 1])) == [rows[0], rows[2]]


def test_a_closed_source_opens_again(diary: Diary) -> None:
    diary.say("one")
    source = JournalFile(diary.path)
    for _ in range(3):
        assert len(source.rows(0, 10)) == 1
        source.close()


def test_a_journal_that_is_not_there(tmp_path: Path) -> None:
    source = JournalFile(tmp_path / "hermes.db")
    assert not source.exists()
    with pytest.raises(JournalError):
        source.rows(0, 1)
    with pytest.raises(JournalError):
        source.fetch([1])


def spoilt_pages(diary: Diary, count: int) -> int:
    """A journal of so many messages, every ninth of whose pages is spoilt; how many are lost."""
    ids = diary.say_all([f"note {number} " + "filler " * 40 for number in range(count)])
    diary.close()
    with closing(sqlite3.connect(diary.path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    data = bytearray(diary.path.read_bytes())
    for page in range(12, len(data) // PAGE - 2, 9):
        data[page * PAGE : page * PAGE + 200] = b"\xa5" * 200
    diary.path.write_bytes(data)
    with closing(JournalFile(diary.path)) as source:
        return len(ids) - len(source.rows(0, 10 * count))


async def test_records_on_damaged_pages_are_left_out(diary: Diary, index_path: Path) -> None:
    lost = spoilt_pages(diary, 900)
    assert 0 < lost < 400
    index = SearchIndex(index_path, JournalFile(diary.path))
    assert len(await index.search("note", limit=1_000)) == 900 - lost


async def test_odd_columns_stop_nothing(diary: Diary, index: SearchIndex) -> None:
    diary.say_all(["one note", "two notes", "three notes"])
    with closing(sqlite3.connect(diary.path)) as db:
        db.execute("UPDATE events SET at = NULL, body = CAST(x'ff00ff' AS TEXT) WHERE id = 1")
        db.execute("UPDATE events SET at = 'soon' WHERE id = 2")
        db.execute("UPDATE sessions SET id = CAST(x'73ff' AS TEXT)")
        db.commit()
    assert {hit.event_id for hit in await index.search("note")} == {2, 3}
