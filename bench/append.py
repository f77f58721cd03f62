"""What it costs to make an event durable, beside bare SQLite commits of the same row.

Prints one JSON object. Floor and journal take turns in the same run, so that a noisy machine is
noisy for both. `--scale` also measures with a million events in the journal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hermes.core.events import MessageReceived, SessionOpened
from hermes.core.messages import user_says
from hermes.core.ports import Lease
from hermes.core.world import World
from hermes.journal.body_templates import encode_event
from hermes.journal.journal import SqliteJournal

TEXT = "What changed in this folder today, and which of the tests should I look at first? " * 2
TURN = "turn_0123456789ab"
EVENT = MessageReceived(message=user_says(TEXT))
OPENING = SessionOpened(source="bench", cwd="/", model="m", provider="p", system="")
FLOOR_TABLE = """
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL)
"""


class Floor:
    """The same row in the same table, committed by SQLite alone, with its default checkpoints."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(FLOOR_TABLE)
        self._db.execute("CREATE UNIQUE INDEX log_place ON log(session, n)")
        self._n = 0

    def commit(self, rows: int = 1) -> None:
        item = encode_event(EVENT)
        self._db.execute("BEGIN IMMEDIATE")
        for _ in range(rows):
            self._n += 1
            row = (1, self._n, TURN, item.template, item.rest, time.time(), bytes(16))
            self._db.execute("INSERT INTO log VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", action="store_true", help="also with a million events")
    parser.add_argument("--appends", type=int, default=3_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        print(json.dumps(asyncio.run(measure(Path(folder), options.appends, options.scale))))


async def measure(folder: Path, appends: int, scale: bool) -> dict[str, Any]:
    async with SqliteJournal(folder / "hermes.db", World()) as journal:
        result = {"empty": await measure_at(journal, folder / "floor.db", appends)}
        if scale:
            await preload(journal, 1_000_000)
            result["at_1m"] = await measure_at(journal, folder / "floor-1m.db", appends)
            result["bytes"] = sizes(folder / "hermes.db")
            result["start"] = await starts(folder)
        return result


async def measure_at(journal: SqliteJournal, floor: Path, appends: int) -> dict[str, Any]:
    return {
        "single": await singles(journal, Floor(floor), appends),
        "groups": await groups(journal, Floor(floor.with_name(f"{floor.name}-groups"))),
    }


async def singles(journal: SqliteJournal, floor: Floor, appends: int) -> dict[str, float]:
    """One append after the other, in rounds that alternate with the floor."""
    lease, _ = await journal.create(journal.world.new_id("bench"), [OPENING])
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(10):
        bare += [timed(floor.commit) for _ in range(appends // 10)]
        for _ in range(appends // 10):
            ours.append(await awaited(lambda: journal.append(lease, [EVENT], turn_id=TURN)))
    floor.close()
    await journal.release(lease)
    return {
        "ms": ms(statistics.median(ours)),
        "floor_ms": ms(statistics.median(bare)),
        "ratio": round(statistics.median(ours) / statistics.median(bare), 2),
        "mean_ratio": round(statistics.mean(ours) / statistics.mean(bare), 2),
        "p99_ms": ms(statistics.quantiles(ours, n=100)[98]),
        "floor_p99_ms": ms(statistics.quantiles(bare, n=100)[98]),
        "worst_ms": ms(max(ours)),
        "floor_worst_ms": ms(max(bare)),
    }


async def groups(journal: SqliteJournal, floor: Floor) -> dict[str, float]:
    """A hundred sessions that append at the same time, one event each, and batches of many."""
    sessions, rounds, batch = 100, 200, 500
    leases = [
        (await journal.create(journal.world.new_id("bench"), [OPENING]))[0] for _ in range(sessions)
    ]

    async def talk(lease: Lease) -> None:
        for _ in range(rounds):
            await journal.append(lease, [EVENT], turn_id=TURN)

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            for lease in leases:
                group.create_task(talk(lease))

    async def in_batches() -> None:
        for _ in range(40):
            await journal.append(leases[0], [EVENT] * batch, turn_id=TURN)

    apart = await awaited(together)
    batched = await awaited(in_batches)
    bare = sum(timed(lambda: floor.commit(batch)) for _ in range(40))
    floor.close()
    for lease in leases:
        await journal.release(lease)
    return {
        "sessions_events_per_s": round(sessions * rounds / apart),
        "batches_events_per_s": round(40 * batch / batched),
        "floor_events_per_s": round(40 * batch / bare),
    }


async def preload(journal: SqliteJournal, events: int) -> None:
    """Many sessions of a size that people have."""
    size = 200
    for _ in range(events // size):
        session_id = journal.world.new_id("old")
        lease, _ = await journal.create(session_id, [OPENING, *[EVENT] * (size - 1)])
        await journal.release(lease)


def sizes(path: Path) -> dict[str, float]:
    db = sqlite3.connect(path)
    (events,) = db.execute("SELECT count(*) FROM log").fetchone()
    query = "SELECT sum(pgsize) FROM dbstat WHERE name IN ('log', 'log_place')"
    (used,) = db.execute(query).fetchone()
    db.close()
    text = len(TEXT.encode()) * events
    return {"text_mb": round(text / 1e6), "log_mb": round(used / 1e6), "ratio": used / text}


async def starts(folder: Path) -> dict[str, float]:
    """A process from its beginning to its first durable events, against one in an empty home."""
    found = {}
    for name, home in (("empty", folder / "new"), ("full", folder)):
        script = (
            "import asyncio, sys, time; from pathlib import Path;"
            "from bench.append import first_steps;"
            "asyncio.run(first_steps(Path(sys.argv[1])))"
        )
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, str(home), cwd=Path(__file__).parents[1]
            )
            await process.wait()
            seconds.append(time.perf_counter() - started)
        found[f"{name}_ms"] = ms(min(seconds))
    found["ratio"] = round(found["full_ms"] / found["empty_ms"], 2)
    found["cpu_s"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, 2)
    return found


async def first_steps(home: Path) -> None:
    async with SqliteJournal(home / "hermes.db", World()) as journal:
        lease, _ = await journal.create(journal.world.new_id("start"), [OPENING, EVENT])
        await journal.append(lease, [EVENT], turn_id=TURN)


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


async def awaited(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def ms(seconds: float) -> float:
    return round(seconds * 1_000, 3)


if __name__ == "__main__":
    main()
