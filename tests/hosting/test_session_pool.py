"""Sessions are opened on demand, shared, and closed when they have no users."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.core.commands import Say
from hermes.testing.request import Request
from hermes.testing.steps import Step, says
from tests.hosting.hosts import host, settled, until


async def test_a_session_is_closed_after_its_last_run(tmp_path: Path) -> None:
    async with host(tmp_path) as own:
        await own.ask("one", "a")
        await until(lambda: own.pool.open_sessions == 0)
        assert own.app.find_session("a") is None


async def test_an_idle_session_stays_open_for_a_while(tmp_path: Path) -> None:
    async with host(tmp_path, idle_seconds=0.3) as own:
        await own.ask("one", "a")
        await asyncio.sleep(0)
        session = own.app.find_session("a")
        assert session is not None
        await own.ask("two", "a")
        assert own.app.find_session("a") is session
        await until(lambda: own.pool.open_sessions == 0)
        assert own.app.find_session("a") is None
        assert (await own.ask("three", "a")).text == "You said: three"


async def test_an_idle_session_can_be_deleted(tmp_path: Path) -> None:
    async with host(tmp_path, idle_seconds=60) as own:
        await own.ask("one", "a")
        async with own.pool.exclusive("a"):
            await own.app.archive.delete("a")
        assert [info.id for info in await own.app.archive.recent()] == []


async def test_closing_the_pool_closes_idle_sessions(tmp_path: Path) -> None:
    async with host(tmp_path, idle_seconds=60) as own:
        await own.ask("one", "a")
        await until(lambda: own.run_executor.endings["completed"] == 1)
        assert own.pool.open_sessions == 1
        await own.pool.close()
        assert own.pool.open_sessions == 0


async def test_runs_of_one_session_share_it_and_run_one_after_the_other(tmp_path: Path) -> None:
    async with host(tmp_path) as own:
        runs = await asyncio.gather(*(own.ask(str(n), "a") for n in range(5)))
        assert [run.text for run in runs] == [f"You said: {n}" for n in range(5)]
        said = await own.app.archive.conversation("a")
        assert [each.role for each in said] == ["user", "assistant"] * 5


async def test_a_turn_from_the_inbox_ends_before_the_session_is_closed(tmp_path: Path) -> None:
    release, asked = asyncio.Event(), asyncio.Event()

    async def rule(request: Request) -> Step:
        if request.last_text == "two":
            asked.set()
            await asyncio.sleep(0.3)
        else:
            await release.wait()
        return says(f"You said: {request.last_text}")

    async with host(tmp_path, rule, with_tasks=True) as own:
        run = await own.start("one", "a")
        await own.app.journal.post("a", Say(text="two"))
        session = own.app.require_session("a")
        await until(lambda: len(session.transcript.waiting) == 1)
        release.set()
        await settled(run)
        await asked.wait()
        await until(lambda: own.pool.open_sessions == 0)
        said = await own.app.archive.conversation("a")
        assert [each.text for each in said] == ["one", "two", "You said: one", "You said: two"]
