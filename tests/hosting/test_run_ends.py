"""A run always ends: its readers get the end or the error, and its session can be used again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.core.commands import Say
from hermes.core.errors import (
    AdmissionRefused,
    DiskFull,
    Fenced,
    NotFound,
    RunNotFound,
    SessionBusy,
)
from hermes.core.messages import AssistantMessage
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.hosting.follower import RecordAdded, RunFollower, TextPiece
from hermes.hosting.run import Run
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, fails, says
from tests.durability.mounts import mounted
from tests.durability.test_full_disk import fill
from tests.faults.test_failed_journal import LONG, _take_away
from tests.hosting.hosts import Host, echo, host, running, settled, until, until_no_run_is_stored

SESSION = "one"


async def check_ended(host: Host, run: Run) -> None:
    """What every reader may rely on, whatever the end."""
    assert run.is_over and run.settled.is_set()
    follower = RunFollower(run)
    events = follower.read()
    assert follower.is_done
    records = [each.record for each in events if isinstance(each, RecordAdded)]
    assert records == run.records
    shown = "".join(each.text for each in events if isinstance(each, TextPiece) and each.is_text)
    assert shown == "".join(reply.text for reply in run.replies)
    assert (host.admission.active, host.admission.queued, host.run_executor.queued) == (0, 0, 0)
    assert host.run_executor.claim(run.session_id)
    host.run_executor.release_claim(run.session_id)
    await until(lambda: host.pool.open_sessions == 0)


async def check_usable(host: Host) -> None:
    again = await host.ask("again", SESSION)
    assert again.status == "completed" and again.text.endswith("again")


async def test_an_answered_run_is_completed(tmp_path: Path) -> None:
    async with host(tmp_path) as own:
        run = await own.ask("hello", SESSION)
        assert (run.status, run.text) == ("completed", "You said: hello")
        await check_ended(own, run)
        await until(lambda: own.run_executor.endings["completed"] == 1)
        past = await own.run_executor.find(run.id)
        assert past is not run and (past.status, past.text) == ("completed", run.text)
        await check_usable(own)


async def test_a_provider_that_fails_fails_the_run(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        return fails(400, "bad request") if request.last_text == "hello" else echo(request)

    async with host(tmp_path, rule) as own:
        run = await own.ask("hello", SESSION)
        assert run.status == "failed" and run.ended is not None and run.failure is None
        await check_ended(own, run)
        await check_usable(own)


async def test_a_full_disk_fails_the_run(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if request.last_text == "fill" and not (disk / "filler").exists():
            fill(disk)
            return says(LONG)
        return echo(request)

    with mounted(tmp_path / "mount", "size=6m") as disk:
        async with host(tmp_path, rule, home=disk / "home") as own:
            run = await own.ask("fill", SESSION)
            assert run.status == "failed" and isinstance(run.failure, DiskFull)
            await check_ended(own, run)
            (disk / "filler").unlink()
            await check_usable(own)


async def test_a_lost_lease_fails_the_run(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if request.last_text == "wait" and not request.results:
            return calls("terminal", command=f"until test -e {tmp_path}/go; do sleep 0.05; done")
        return says(f"You said: {request.last_text.splitlines()[0]}")

    async with host(tmp_path, rule) as own:
        run = await own.start("wait", SESSION)
        await until(lambda: run.session is not None and run.session.transcript.unanswered != ())
        async with own.stage.app() as other:
            await _take_away(other)
            await other.journal.release(await other.journal.acquire(SESSION))
        (tmp_path / "go").touch()
        await settled(run)
        assert run.status == "failed" and isinstance(run.failure, Fenced)
        await check_ended(own, run)
        await check_usable(own)


async def test_a_run_that_is_stopped_is_cancelled(tmp_path: Path) -> None:
    async with host(tmp_path, sleeping) as own:
        run = await own.start("wait", SESSION)
        await until(lambda: run.steps > 0)
        await own.run_executor.stop(run)
        await settled(run)
        assert run.status == "cancelled"
        await check_ended(own, run)
        await check_usable(own)


@pytest.mark.parametrize("persistent", [False, True])
async def test_a_server_that_stops_ends_its_runs(tmp_path: Path, persistent: bool) -> None:
    async with host(tmp_path, sleeping) as own:
        run = await own.start("wait", SESSION, persistent=persistent)
        await until(lambda: run.steps > 0)
        await own.run_executor.drain(0)
        assert run.status == "cancelled"
        await check_ended(own, run)
        with pytest.raises(AdmissionRefused) as refused:
            await own.start("more")
        assert refused.value.is_draining
        await until_no_run_is_stored(own)


async def test_a_run_that_is_closed_fails_and_is_cancelled_after_a_restart(tmp_path: Path) -> None:
    async with host(tmp_path, sleeping) as own:
        run = await own.start("wait", SESSION, persistent=True)
        await until(lambda: run.steps > 0)
        await own.run_executor.close()
        assert run.status == "failed" and isinstance(run.failure, AdmissionRefused)
        await check_ended(own, run)
        assert [id for id, _ in await own.store.unfinished_runs()] == [run.id]
        async with running(own.stage) as other:
            await other.run_executor.continue_unfinished()
            again = await settled(await other.run_executor.find(run.id))
            assert again.status == "cancelled"
            await until(lambda: other.run_executor.endings["cancelled"] == 1)
            await check_ended(other, again)
            await check_usable(other)
            await until_no_run_is_stored(other)


async def test_a_session_that_is_open_elsewhere_answers_there(tmp_path: Path) -> None:
    async with host(tmp_path) as own, own.stage.app() as other:
        await own.ask("first", SESSION)
        await until(lambda: own.pool.open_sessions == 0)
        session = await open_when_free(other)
        other.start_session_tasks(session)
        await session.send(Say(text="second"))
        await session.wait_until_idle()
        run = await own.ask("third", SESSION)
        assert (run.status, run.text) == ("completed", "You said: third")
        last = session.transcript.messages[-1]
        assert isinstance(last, AssistantMessage) and last.text == run.text
        await check_ended(own, run)


async def open_when_free(other: App) -> Session:
    """The other process releases its lease a moment after it has closed the session."""
    opening = SessionRequest(source="cli", attended=False, resume=SESSION)
    async with asyncio.timeout(30):
        while True:
            try:
                return await other.open(opening)
            except SessionBusy:
                await asyncio.sleep(0.01)


Start = Callable[[Host], Awaitable[Run]]


@pytest.mark.parametrize(
    "start",
    [
        lambda own: own.start("hello", "missing", create="never"),
        lambda own: own.start("", SESSION),
        lambda own: own.start("hello", SESSION, confined=True, source="api:other"),
    ],
)
async def test_a_run_that_cannot_start_raises(tmp_path: Path, start: Start) -> None:
    async with host(tmp_path) as own:
        await own.ask("first", SESSION)
        with pytest.raises(NotFound):
            await start(own)
        await until(lambda: own.pool.open_sessions == 0)
        await check_usable(own)


async def test_an_unknown_run_is_not_found(tmp_path: Path) -> None:
    async with host(tmp_path) as own:
        for run_id in ("", "run_x", "run_missing_0123456789ab"):
            with pytest.raises(RunNotFound):
                await own.run_executor.find(run_id)


def sleeping(request: Request) -> Step:
    if request.last_text == "wait" and not request.results:
        return calls("terminal", command="sleep 60")
    return echo(request)
