"""Processes that die without warning lose nothing that was said to be durable."""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from hermes.journal.verify import verify
from tests.journal.processes import end, line, start
from tests.journal.samples import journal_in, said


@pytest.mark.parametrize("commit", [1, 7])
async def test_death_before_the_commit_leaves_the_append_out(tmp_path: Path, commit: int) -> None:
    worker = await start("append", tmp_path, "one", "20", f"journal.before_commit:{commit}")
    told, _ = await end(worker)
    assert worker.returncode == -signal.SIGKILL
    assert told == [*range(1, commit)] if commit > 1 else told == []
    async with journal_in(tmp_path) as journal:
        if commit > 1:
            assert [record.n for record in await journal.read("one")] == told
        assert await verify(journal) == ()


@pytest.mark.parametrize("commit", [1, 7])
async def test_death_after_the_commit_keeps_the_append(tmp_path: Path, commit: int) -> None:
    worker = await start("append", tmp_path, "one", "20", f"journal.after_commit:{commit}")
    told, _ = await end(worker)
    assert worker.returncode == -signal.SIGKILL
    assert told == [*range(1, commit)]
    async with journal_in(tmp_path) as journal:
        assert [record.n for record in await journal.read("one")] == [*told, commit]
        assert await verify(journal) == ()


async def test_a_session_of_the_dead_is_free_at_once(tmp_path: Path) -> None:
    worker = await start("hold", tmp_path, "one")
    assert await line(worker) == "held"
    worker.kill()
    await worker.wait()
    async with journal_in(tmp_path) as journal:
        lease = await journal.acquire("one")
        (record,) = await journal.append(lease, [said("Mine now")])
        assert (lease.fence, record.n) == (2, 2)
    assert list((tmp_path / "locks").iterdir()) == []


async def _churn(home: Path, session_id: str, count: int, chance: random.Random) -> set[int]:
    """Append until `count` records are durable, however often the worker is killed."""
    durable: set[int] = set()
    while len(durable) < count:
        worker = await start("append", home, session_id, str(count - len(durable)), "")
        # However slow the machine is, each has done something before it dies.
        first = [await line(worker) for _ in range(chance.randrange(1, count))]
        with suppress(ProcessLookupError):
            worker.kill()
        told, errors = await end(worker)
        assert not errors
        durable |= {int(number) for number in first if number} | set(told)
    return durable


async def _check(home: Path, durable: dict[str, set[int]]) -> None:
    async with journal_in(home) as journal:
        for session_id, told in durable.items():
            found = [record.n for record in await journal.read(session_id)]
            assert found == list(range(1, len(found) + 1))
            assert told <= set(found)
        assert await verify(journal) == ()


async def test_three_processes_are_killed_at_random(tmp_path: Path) -> None:
    names = ["one", "two", "three"]
    runs = [_churn(tmp_path, name, 150, random.Random(name)) for name in names]
    await _check(tmp_path, dict(zip(names, await asyncio.gather(*runs), strict=True)))


@pytest.mark.slow
async def test_eight_processes_are_killed_at_random(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(8)]
    runs = [_churn(tmp_path, name, 2_000, random.Random(name)) for name in names]
    await _check(tmp_path, dict(zip(names, await asyncio.gather(*runs), strict=True)))
