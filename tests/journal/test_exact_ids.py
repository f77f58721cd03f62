"""An exact session id is found, however many longer ids begin with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import NotFound
from hermes.core.events import SessionOpened
from hermes.core.world import World
from hermes.journal import sessions
from hermes.journal.journal import SqliteJournal

OPENED = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="")


async def test_an_exact_id_is_found_among_longer_ones(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "hermes.db", World()) as journal:
        for name in ("run", *(f"run-{n}" for n in range(20))):
            lease, _ = await journal.create(name, [OPENED])
            await journal.release(lease)
        assert await sessions.find(journal, "run") == "run"
        assert await sessions.find(journal, "run-19") == "run-19"
        with pytest.raises(NotFound, match="Several sessions begin with"):
            await sessions.find(journal, "run-")
