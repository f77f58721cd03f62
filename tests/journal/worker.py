"""A process of its own for the tests: appends to a journal and says on stdout what is durable."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from hermes.core.errors import Fenced, NotFound
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.testing.kill import kill_points
from tests.journal.samples import opened, said


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def append_many(home: Path, session_id: str, count: int, kill_at: str) -> None:
    """Own the session, new or not, and append `count` messages, one commit each."""
    journal = SqliteJournal(home / "hermes.db", World(kill_point=kill_points(kill_at)))
    try:
        lease = await journal.acquire(session_id)
    except NotFound:
        lease, _ = await journal.create(session_id, [opened()])
        tell("1")
    for number in range(count):
        (record,) = await journal.append(lease, [said(f"{session_id} {number}")])
        tell(f"{record.n}")
    await journal.close()


async def hold(home: Path, session_id: str) -> None:
    """Own the session until killed, or until stdin ends; then append once more."""
    journal = SqliteJournal(home / "hermes.db", World())
    lease, _ = await journal.create(session_id, [opened()])
    tell("held")
    await asyncio.to_thread(sys.stdin.readline)
    try:
        await journal.append(lease, [said("I am back")])
        tell("written")
    except Fenced:
        tell("fenced")
    await journal.close()


def main() -> None:
    what, home, session_id, *rest = sys.argv[1:]
    if what == "append":
        asyncio.run(append_many(Path(home), session_id, int(rest[0]), rest[1]))
    else:
        asyncio.run(hold(Path(home), session_id))


if __name__ == "__main__":
    main()
