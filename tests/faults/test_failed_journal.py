"""A journal that fails under an open session: the turn stops with the error, and once the journal
takes events again the same session goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.core.commands import Compact, Say
from hermes.core.errors import DiskFull, Fenced, SessionBusy
from hermes.core.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.kills import check_journal
from tests.durability.mounts import mounted
from tests.durability.stage import Stage
from tests.durability.test_full_disk import fill

LONG = "word " * 100_000


class Ground:
    """An open session whose home is on a small disk."""

    def __init__(self, disk: Path, stage: Stage, app: App, session: Session) -> None:
        self.disk = disk
        self.stage = stage
        self.app = app
        self.session = session

    async def say(self, text: str) -> str:
        async with asyncio.timeout(30):
            async for _ in self.session.ask(Say(text=text)):
                pass
            await self.session.wait_until_idle()
        last = self.session.transcript.messages[-1]
        assert isinstance(last, AssistantMessage)
        return last.text

    def free(self) -> None:
        (self.disk / "filler").unlink()

    async def check(self) -> None:
        records = await self.app.archive.records(self.session.id)
        check_journal(records)
        assert fold(records).messages == self.session.transcript.messages


@asynccontextmanager
async def small_disk(
    tmp_path: Path, rule: Callable[[Path, Request], Step]
) -> AsyncIterator[Ground]:
    with mounted(tmp_path / "mount", "size=6m") as disk:
        async with ScriptedServer(lambda request: rule(disk, request), strict=False) as server:
            stage = Stage(tmp_path / "stage", server)
            stage.home = disk / "home"
            async with stage.app() as app:
                opening = SessionRequest(source="cli", attended=False, cwd=str(stage.work))
                yield Ground(disk, stage, app, await app.open(opening))


def echo(disk: Path, request: Request) -> Step:
    if request.last_text == "fill" and not (disk / "filled").exists():
        (disk / "filled").touch()
        fill(disk)
        return says(LONG)
    return says(f"You said: {request.last_text}")


async def test_a_reply_that_cannot_be_written_stops_the_turn(tmp_path: Path) -> None:
    async with small_disk(tmp_path, echo) as ground:
        assert await ground.say("one") == "You said: one"
        with pytest.raises(DiskFull, match="free some space"):
            await ground.say("fill")
        assert not ground.session.busy
        with pytest.raises(DiskFull):
            await ground.session.wait_until_idle()
        ground.free()
        assert await ground.say("two") == "You said: two"
        await ground.check()


async def test_a_tool_that_fills_the_disk_stops_the_turn(tmp_path: Path) -> None:
    def rule(disk: Path, request: Request) -> Step:
        if request.results or request.last_text != "one":
            return says(f"You said: {request.last_text.splitlines()[0]}")
        return calls("terminal", command=f"cat /dev/zero > {disk}/filler; seq 9000")

    async with small_disk(tmp_path, rule) as ground:
        with pytest.raises(DiskFull):
            await ground.say("one")
        ground.free()
        assert await ground.say("two") == "You said: two"
        messages = ground.session.transcript.messages
        (results,) = [each for each in messages if isinstance(each, ToolMessage)]
        assert results.results[0].text.startswith("interrupted")
        await ground.check()


async def test_a_compaction_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    async with small_disk(tmp_path, echo) as ground:
        for number in range(8):
            await ground.say(f"{number} {'y' * 4000}")
        fill(ground.disk)
        with pytest.raises(DiskFull):
            for _ in range(50):
                await ground.session.send(Compact())
        ground.free()
        assert ground.session.transcript.compactions == []
        await ground.session.send(Compact())
        assert ground.session.transcript.compactions != []
        assert await ground.say("two") == "You said: two"
        await ground.check()


async def test_a_session_left_on_a_full_disk_can_be_opened_again(tmp_path: Path) -> None:
    async with small_disk(tmp_path, echo) as ground:
        await ground.say("one")
        with pytest.raises(DiskFull):
            await ground.say("fill")
        await ground.app.close_session(ground.session, soon=True)
        ground.free()
        opening = SessionRequest(source="cli", attended=False, resume=ground.session.id)
        ground.session = await ground.app.open(opening)
        assert await ground.say("two") == "You said: two"
        await ground.check()


async def test_a_session_that_another_process_had_is_taken_again(tmp_path: Path) -> None:
    async with small_disk(tmp_path, echo) as ground:
        await ground.say("one")
        opening = SessionRequest(source="cli", attended=False, resume=ground.session.id)
        async with ground.stage.app() as other:
            await _take_away(other)
            visitor = await other.open(opening)
            await visitor.send(Say(text="theirs"))
            await visitor.wait_until_idle()
            with pytest.raises(SessionBusy):
                await ground.say("two")
        assert await ground.say("three") == "You said: three"
        said = [
            each.text
            for each in ground.session.transcript.messages
            if isinstance(each, UserMessage)
        ]
        assert said == ["one", "theirs", "three"]
        await ground.check()


async def test_a_lease_that_is_lost_in_a_turn_stops_it(tmp_path: Path) -> None:
    def rule(_disk: Path, request: Request) -> Step:
        if request.last_text == "wait" and not request.results:
            return calls("terminal", command="until test -e go; do sleep 0.05; done")
        return says(f"You said: {request.last_text.splitlines()[0]}")

    async with small_disk(tmp_path, rule) as ground:
        await ground.say("one")
        turn = asyncio.ensure_future(ground.say("wait"))
        while ground.session.transcript.unanswered == ():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        async with ground.stage.app() as other:
            await _take_away(other)
            await other.journal.release(await other.journal.acquire(ground.session.id))
        (ground.stage.work / "go").touch()
        with pytest.raises(Fenced):
            await turn
        assert await ground.say("two") == "You said: two"
        await ground.check()


async def _take_away(other: App) -> None:
    """As if this process had been stopped for longer than a lease lasts."""
    await other.journal.writing(lambda tx: tx.db.execute("UPDATE owners SET beat = 0").fetchall())
