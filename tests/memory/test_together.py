"""Many processes remember at once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes.memory.entries import split_entries
from tests.memory.conftest import Notes

ADDER = str(Path(__file__).with_name("adder.py"))
PROCESSES, EACH = 8, 6


async def test_what_eight_processes_add_at_once_is_all_kept(tmp_path: Path) -> None:
    folder = tmp_path / "memories"
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, ADDER, str(folder), f"process {number}", str(EACH)
        )
        for number in range(PROCESSES)
    ]
    async with asyncio.timeout(120):
        assert [await process.wait() for process in running] == [0] * PROCESSES
    expected = {f"process {n} says {k}" for n in range(PROCESSES) for k in range(EACH)}
    notes = Notes(tmp_path)
    assert sorted(await notes.texts()) == sorted(expected)
    assert set(split_entries(notes.file().read_text())) == expected
    assert len(await notes.memories.changes()) == PROCESSES * EACH
