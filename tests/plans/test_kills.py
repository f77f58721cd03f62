"""A plan dies anywhere: no step that may not run twice does, and everything else finishes."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.codec.values import JsonObject
from hermes.core.commands import Answer, Say
from hermes.core.events import QuestionAsked, Record, ToolFinished
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.session_request import SessionRequest
from hermes.testing.kill import walk
from hermes.testing.server import ScriptedServer
from tests.durability.kills import check_journal, end_processes, without_skills
from tests.durability.stage import SECONDS, Stage
from tests.plans.twelve_steps import (
    EFFECTS,
    NEEDED_BY,
    SETTINGS,
    STEPS,
    count_effects,
    model,
    write_files,
)

SEEDS = 20
# Each run takes some seconds, so an ordinary test dies only at these.
QUICK = ("inner.started:3", "inner.finished:5", "tool.effect:6")


def _new_stage(root: Path, server: ScriptedServer) -> Stage:
    stage = Stage(root, server, settings=SETTINGS)
    without_skills(stage.home)
    write_files(stage.work)
    return stage


def _plan_results(records: Sequence[Record]) -> list[ToolResult]:
    finished = (r.event.result for r in records if isinstance(r.event, ToolFinished))
    return [result for result in finished if result.name == "plan"]


def _statuses(result: ToolResult) -> dict[str, str]:
    states: JsonObject = result.details["plan"]["states"]
    return {name: state.get("status", "pending") for name, state in states.items()}


def _check_unattended(result: ToolResult) -> list[str]:
    """A step that was cut stays unknown if nobody answers, what needs it is skipped, and everything
    else is done. Return the steps with an unknown outcome."""
    statuses = _statuses(result)
    unknown = [name for name, status in statuses.items() if status == "unknown"]
    assert set(unknown) <= set(NEEDED_BY), statuses
    skipped = {name for each in unknown for name in NEEDED_BY[each]}
    expected = {name: "skipped" if name in skipped else "done" for name in statuses}
    expected |= dict.fromkeys(unknown, "unknown")
    assert statuses == expected, result.text
    assert result.details["status"] == ("partial" if unknown else "completed")
    return unknown


async def _resume_attended(stage: Stage, session_id: str) -> list[str]:
    """Continue the plan; the person says that unknown steps are done. Return the questions."""
    asked: list[str] = []
    async with stage.app() as app, asyncio.timeout(SECONDS):
        request = SessionRequest(
            source="cli", attended=True, cwd=str(stage.work), resume=session_id
        )
        session = await app.open(request)
        arguments: JsonObject = {"action": "run", "confirm": "skip"}
        call = ToolCall(id="call_again", name="plan", arguments=arguments)
        async for record in session.ask(Say(text="/plan resume", calls=(call,))):
            if isinstance(record.event, QuestionAsked):
                asked.append(record.event.question)
                await session.send(Answer(id=record.event.id, text="treat it as done"))
    return asked


async def _survive(root: Path, point: str) -> bool:
    """Whether the run died there."""
    async with ScriptedServer(model) as server:
        stage = _new_stage(root, server)
        ended = await stage.ask("Go", kill_at=point)
        assert ended.code in (-signal.SIGKILL, 0), ended
        if not await stage.session_ids():
            said = await stage.ask("Go")
            assert said.code == 0, said
        (session_id,) = await stage.session_ids()
        again = await stage.ask("And now?", resume=session_id)
        assert (again.code, again.err) == (0, ""), again
        records = await stage.records(session_id)
        check_journal(records)
        (result,) = _plan_results(records)
        if unknown := _check_unattended(result):
            asked = await _resume_attended(stage, session_id)
            assert len(asked) == len(unknown)
            result = _plan_results(await stage.records(session_id))[-1]
        assert _statuses(result) == {step["step_id"]: "done" for step in STEPS}
        assert result.details["status"] == "completed"
        _check_effects(stage.work, unknown)
        assert server.violations == []
        end_processes(stage.home)
    return ended.code != 0


def _check_effects(work: Path, unknown: Sequence[str]) -> None:
    """A step with an unknown outcome happened once or not at all; every other step once."""
    counts = count_effects(work)
    for name in EFFECTS:
        step = "s7" if name == "script" else name
        assert counts[name] in ((0, 1) if step in unknown else (1,)), (name, counts)
    assert work.joinpath("s12.txt").exists()


async def _points(root: Path) -> tuple[str, ...]:
    names = root / "names"
    async with ScriptedServer(model) as server:
        stage = _new_stage(root, server)
        ended = await stage.ask("Go", kill_at=f"?{names}")
        assert (ended.code, ended.out) == (0, "All done.\n"), ended
    return walk(names)


async def test_a_plan_continues_where_it_stopped(tmp_path: Path) -> None:
    died = [await _survive(tmp_path / str(number), point) for number, point in enumerate(QUICK)]
    assert all(died)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_plan_survives_a_death_at_every_point(tmp_path: Path, seed: int) -> None:
    points = await _points(tmp_path / "all")
    most = Counter(point.partition(":")[0] for point in points)
    assert {"inner.started", "inner.finished", "tool.effect"} <= set(most)
    deaths = [
        f"{name}:{random.Random(f'{seed} {name}').randint(1, most[name])}" for name in sorted(most)
    ]
    died = await _survive_all(tmp_path, deaths)
    assert died > len(deaths) * 0.8


async def _survive_all(root: Path, deaths: Sequence[str]) -> int:
    room = asyncio.Semaphore(2)

    async def one(number: int, point: str) -> bool:
        async with room:
            try:
                return await _survive(root / str(number), point)
            except BaseException as error:
                error.add_note(f"killed at {point}")
                raise

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(one(*each)) for each in enumerate(deaths)]
    return sum(run.result() for run in runs)
