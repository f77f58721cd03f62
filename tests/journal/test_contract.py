"""The contract of journals, kept by the one on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.journal.journal import SqliteJournal
from tests.journal.contract import *  # noqa: F403
from tests.journal.contract import OpenJournal
from tests.journal.samples import HandClock, journal_in


@pytest.fixture
async def open_journal(tmp_path: Path) -> AsyncIterator[OpenJournal]:
    journals: list[SqliteJournal] = []
    clock = HandClock()

    def open_one() -> SqliteJournal:
        journals.append(journal_in(tmp_path, clock))
        return journals[-1]

    yield open_one
    for journal in journals:
        await journal.close()
