"""An empty journal, and an index of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from tests.journal.index.diary import Diary


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    diary = Diary(tmp_path / "hermes.db")
    yield diary
    diary.close()


@pytest.fixture
def index_path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def index(diary: Diary, index_path: Path) -> SearchIndex:
    return SearchIndex(index_path, JournalFile(diary.path))
