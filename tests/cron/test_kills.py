"""A process that dies during a run: the next one continues, and nothing is done twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hermes.core.events import MessageReceived, TurnEnded
from hermes.core.world import World
from hermes.cron.service import OWNER, CronService
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.stage import Stage

TICK = ("-m", "test", "--provider", "custom", "--yolo", "cron", "tick")
POINTS = ("cron.claimed", "cron.started", "turn.started", "reply.received", "cron.before_end")


async def due_job(stage: Stage, **fields: object) -> str:
    """A job that the next tick starts."""
    async with stage.app(world=World()) as app:
        jobs = CronService(app.context, app.journal)
        given = {"schedule": "every 1h", "prompt": "Go.", **fields}
        job = await jobs.add(given, OWNER)
        await jobs.run_now(job["id"])
        return str(job["id"])


async def states(stage: Stage, job: str) -> list[str]:
    async with stage.app() as app:
        return [run.state for run in await CronService(app.context, app.journal).runs(job)]


async def facts(stage: Stage, job: str) -> tuple[list[str], list[str], int]:
    """The states of its runs, how its turns ended, and how many messages they had."""
    async with stage.app() as app:
        runs = await CronService(app.context, app.journal).runs(job)
        events = []
        for run in runs:
            if run.session_id:
                events += [each.event for each in await app.archive.records(run.session_id)]
    endings = [str(event.reason) for event in events if isinstance(event, TurnEnded)]
    messages = sum(isinstance(event, MessageReceived) for event in events)
    return [run.state for run in runs], endings, messages


@pytest.mark.parametrize("point", POINTS)
async def test_a_killed_run_is_continued_by_the_next_process(tmp_path: Path, point: str) -> None:
    def rule(request: Request) -> Step:
        if request.messages[-1].role == "user":
            return calls("terminal", command="echo x >> made")
        return says("Done.")

    async with ScriptedServer(rule, strict=False) as server:
        stage = Stage(tmp_path / "stage", server)
        job = await due_job(stage, workdir=str(stage.work))
        killed = await stage.run(*TICK, kill_at=point)
        assert killed.code == -9
        done = await stage.run(*TICK)
        assert (done.code, done.out) == (0, "1 job started.\n")
        assert await facts(stage, job) == (["completed"], ["done"], 1)
        assert (stage.work / "made").read_text() == "x\n"
        pages = [*(stage.home / "cron/output" / job).glob("*.md")]
        assert len(pages) == 1
        assert pages[0].read_text().endswith("## Response\nDone.\n")
        stored = json.loads((stage.home / "cron/jobs.json").read_text())["jobs"][0]
        assert (stored["repeat"]["completed"], stored["last_status"]) == (1, "ok")


async def test_a_killed_script_is_unknown_and_not_repeated(tmp_path: Path) -> None:
    async with ScriptedServer([], strict=False) as server:
        stage = Stage(tmp_path / "stage", server)
        scripts = stage.home / "scripts"
        scripts.mkdir()
        (scripts / "pay.sh").write_text("echo x >> paid\n")
        job = await due_job(stage, script="pay.sh", no_agent=True)
        assert (await stage.run(*TICK, kill_at="cron.before_end")).code == -9
        await stage.run(*TICK)
        assert (await facts(stage, job))[0] == ["unknown"]
        assert (scripts / "paid").read_text() == "x\n"
        status = await stage.run("cron", "status")
        assert "unknown" in status.out
        assert "its outcome is unknown" in status.out
        assert "outcome of a run" in (await stage.run("cron", "doctor")).out


async def test_a_script_that_had_not_begun_runs_after_a_crash(tmp_path: Path) -> None:
    async with ScriptedServer([], strict=False) as server:
        stage = Stage(tmp_path / "stage", server)
        scripts = stage.home / "scripts"
        scripts.mkdir()
        (scripts / "pay.sh").write_text("echo x >> paid\n")
        job = await due_job(stage, script="pay.sh", no_agent=True)
        assert (await stage.run(*TICK, kill_at="cron.claimed")).code == -9
        await stage.run(*TICK)
        assert (await facts(stage, job))[0] == ["completed"]
        assert (scripts / "paid").read_text() == "x\n"


async def test_the_script_of_an_agent_does_not_run_twice(tmp_path: Path) -> None:
    async with ScriptedServer(lambda _: says("Done."), strict=False) as server:
        stage = Stage(tmp_path / "stage", server)
        scripts = stage.home / "scripts"
        scripts.mkdir()
        # It ends the process that runs it, before the message of the run is stored.
        (scripts / "once.sh").write_text("echo x >> ran\nkill -9 $PPID\nsleep 9\n")
        job = await due_job(stage, script="once.sh")
        assert (await stage.run(*TICK)).code == -9
        await stage.run(*TICK)
        assert await facts(stage, job) == (["completed"], ["done"], 1)
        assert (scripts / "ran").read_text() == "x\n"
        assert "its outcome is unknown" in server.requests[-1].last_text


async def test_a_scheduler_in_the_foreground_wakes_for_a_new_job_and_stops_in_order(
    tmp_path: Path,
) -> None:
    async with ScriptedServer(lambda _: says("Done."), strict=False) as server:
        stage = Stage(tmp_path / "stage", server)
        process = await stage.start("-m", "test", "--provider", "custom", "cron", "run")
        assert process.stderr is not None
        assert b"The scheduler runs" in await process.stderr.readline()
        async with asyncio.timeout(30):
            while not [*(stage.home / "cron/wake").glob("*")]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        job = await due_job(stage)
        async with asyncio.timeout(30):
            while await states(stage, job) != ["completed"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        status = await stage.run("cron", "status")
        assert (status.code, "running (seen" in status.out) == (0, True)
        process.terminate()
        out, _ = await process.communicate()
        assert (process.returncode, out) == (0, b"The scheduler has stopped.\n")
        assert (await stage.run("cron", "status")).code == 1


async def test_a_stopped_scheduler_interrupts_its_run_and_a_one_shot_comes_again(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()

    async def rule(_request: Request) -> Step:
        begun.set()
        await asyncio.sleep(60)
        return says("Too late.")

    async with ScriptedServer(rule, strict=False) as server:
        stage = Stage(tmp_path / "stage", server, settings="cron: {drain_seconds: 0}\n")
        job = await due_job(stage, schedule="in 1h")
        process = await stage.start("-m", "test", "--provider", "custom", "cron", "run")
        async with asyncio.timeout(30):
            await begun.wait()
        process.terminate()
        await process.communicate()
        assert process.returncode == 0
        assert (await facts(stage, job))[:2] == (["failed"], ["interrupted"])
        stored = json.loads((stage.home / "cron/jobs.json").read_text())["jobs"][0]
        assert (stored["state"], stored["retry"]) == ("scheduled", {"attempt": 1})
