"""The index file notices what is wrong with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.journal.index.file import (
    EMPTY,
    IndexDamaged,
    IndexFile,
    IndexUnavailable,
    create,
    discard,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "index.db"
    create(path)
    return path


def filled(path: Path) -> None:
    with closing(IndexFile(path)) as file, file.writing():
        for part in range(5):
            file.put(1, "terms", part, b"block %d" % part)
        file.put_manifest(EMPTY)


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql)
        db.commit()


def test_only_the_owner_may_read_it(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_file_is_empty(path: Path) -> None:
    with closing(IndexFile(path)) as file:
        assert file.manifest() == EMPTY
        assert file.problems() == []


def test_blocks_are_read_back(path: Path) -> None:
    filled(path)
    with closing(IndexFile(path)) as file:
        assert file.block(1, "terms", 3) == b"block 3"
        assert list(file.blocks(1, "terms", 1, 4)) == [b"block 1", b"block 2", b"block 3"]
        assert list(file.blocks(1, "docs", 0, 0)) == []


def test_nothing_is_kept_of_what_was_not_finished(path: Path) -> None:
    filled(path)
    with closing(IndexFile(path)) as file:
        with pytest.raises(ZeroDivisionError), file.writing():
            file.put(1, "terms", 3, b"other")
            raise ZeroDivisionError
        assert file.block(1, "terms", 3) == b"block 3"


def test_a_changed_block_is_noticed(path: Path) -> None:
    filled(path)
    change(path, "UPDATE blocks SET data = CAST(replace(data, '3', '4') AS BLOB) WHERE key > 0")
    with closing(IndexFile(path)) as file, pytest.raises(IndexDamaged):
        file.block(1, "terms", 3)


def test_blocks_that_changed_places_are_noticed(path: Path) -> None:
    filled(path)
    change(path, "UPDATE blocks SET key = 7 WHERE substr(data, 5) = x'626c6f636b2031'")
    change(path, "UPDATE blocks SET key = key - 1 WHERE substr(data, 5) = x'626c6f636b2032'")
    with closing(IndexFile(path)) as file, pytest.raises(IndexDamaged):
        file.block(1, "terms", 1)


def test_a_missing_block_is_noticed(path: Path) -> None:
    filled(path)
    change(path, "DELETE FROM blocks WHERE substr(data, 5) = x'626c6f636b2033'")
    with closing(IndexFile(path)) as file:
        with pytest.raises(IndexDamaged):
            file.block(1, "terms", 3)
        with pytest.raises(IndexDamaged):
            list(file.blocks(1, "terms", 0, 5))
        with pytest.raises(IndexDamaged):
            list(file.blocks(1, "terms", 0, 6))


def test_a_missing_manifest_is_noticed(path: Path) -> None:
    filled(path)
    change(path, "DELETE FROM blocks WHERE key = 0")
    with closing(IndexFile(path)) as file, pytest.raises(IndexDamaged):
        file.manifest()


def test_a_file_that_is_no_database_is_noticed(path: Path) -> None:
    path.write_bytes(b"these are not the bytes of a database " * 400)
    with pytest.raises(IndexDamaged):
        IndexFile(path)


def test_a_file_that_calls_itself_too_new_to_write_is_noticed(path: Path) -> None:
    filled(path)
    data = bytearray(path.read_bytes())
    data[18] = 9
    path.write_bytes(data)
    with closing(IndexFile(path)) as file:
        assert file.block(1, "terms", 3) == b"block 3"
        with pytest.raises(IndexDamaged), file.writing():
            file.put(1, "terms", 3, b"other")


def test_a_place_where_no_file_can_be_is_told_from_damage(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, no folder")
    with pytest.raises(IndexUnavailable):
        create(tmp_path / "home" / "index.db")
    with pytest.raises(IndexUnavailable):
        IndexFile(tmp_path / "home" / "index.db")


def test_a_discarded_file_leaves_nothing(path: Path) -> None:
    filled(path)
    path.with_name("index.db-journal").write_bytes(b"rest")
    discard(path)
    assert list(path.parent.iterdir()) == []
    discard(path)
