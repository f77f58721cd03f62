"""The end of a background process is told once, whoever dies on the way."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from hermes.core.events import MessageReceived
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.kills import check_journal, end_processes
from tests.durability.stage import SECONDS, Stage, finished, line

WAITS = "until [ -e go ]; do sleep 0.05; done; echo over"


def model(request: Request) -> Step:
    if request.results or request.last_text != "Start it.":
        return says("Fine.")
    return calls("terminal", command=WAITS, background=True, notify_on_complete=True)


async def notices(stage: Stage, session_id: str) -> list[str]:
    records = await stage.records(session_id)
    check_journal(records)
    found = [r.event.message for r in records if isinstance(r.event, MessageReceived)]
    return [message.text for message in found if message.origin.startswith("process:")]


async def test_an_end_that_nobody_saw_is_told_later_and_once(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        stage = Stage(tmp_path, server)
        try:
            first = await stage.hold("-", "Start it.")
            session_id = await line(first)
            first.kill()
            await finished(first)
            stage.work.joinpath("go").touch()
            await _told(stage, session_id)
        finally:
            end_processes(stage.home)
    assert server.violations == []


async def test_a_death_over_the_news_does_not_tell_it_twice(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        stage = Stage(tmp_path, server)
        try:
            first = await stage.hold("-", "Start it.", kill_at="message.received:2")
            session_id = await line(first)
            stage.work.joinpath("go").touch()
            async with asyncio.timeout(SECONDS):
                assert await first.wait() == -signal.SIGKILL
            await _told(stage, session_id)
        finally:
            end_processes(stage.home)
    assert server.violations == []


async def _told(stage: Stage, session_id: str) -> None:
    """Two more holders, one after the other: the first one hears the news and nobody else."""
    for turns, words in ((2, ""), (3, "Anything else?")):
        holder = await stage.hold(session_id, *words.split())
        assert await line(holder) == session_id
        await stage.until_ended(session_id, turns=turns)
        await finished(holder)
        (notice,) = await notices(stage, session_id)
        assert "completed (exit 0)" in notice and "over" in notice
