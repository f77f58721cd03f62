"""Listing the newest sessions of a home that has many."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import report, rounded
from bench.search import line_of
from hermes.core.world import World
from hermes.journal.import_ import import_lines
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import list_sessions

SESSIONS, SHOWN, TIMES = 20_000, 20, 50


def lines() -> Iterator[bytes]:
    for number in range(SESSIONS):
        at = 1_700_000_000 + 60 * number
        yield line_of(f"s{number}", at, "user", f"Question {number} about the garden")
        yield line_of(f"s{number}", at + 5, "assistant", f"Answer {number}")


async def measure_listing(path: Path) -> None:
    journal = SqliteJournal(path, World())
    await import_lines(journal, lines())
    times = []
    for _ in range(TIMES):
        begun = time.process_time()
        found = await list_sessions(journal, limit=SHOWN)
        times.append(time.process_time() - begun)
        assert len(found) == SHOWN
    await journal.close()
    times.sort()
    report(
        "list_sessions",
        sessions=SESSIONS,
        shown=SHOWN,
        cpu_ms_p50=rounded(1000 * times[TIMES // 2], 2),
        cpu_ms_max=rounded(1000 * times[-1], 2),
        goal="<= 3 ms",
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure_listing(Path(name) / "hermes.db"))


if __name__ == "__main__":
    main()
