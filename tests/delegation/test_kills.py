"""A parent with three child sessions dies anywhere: nothing happens twice, everything finishes."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.core.events import MessageReceived, Record, ToolFinished
from hermes.delegation.outcome import read_outcome
from hermes.testing.kill import walk
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.delegation.family import delegate, first_text, until
from tests.durability.kills import check_journal, end_processes, without_skills
from tests.durability.stage import SECONDS, Stage, finished, line

GOALS = ("Task 0", "Task 1", "Task 2")
SEEDS = 20
# Each run takes a second or two, so an ordinary test dies only at these.
QUICK = ("child.opened:2", "child.received:3", "child.finished:1", "tool.effect:2", "turn.ended:3")


def model(request: Request) -> Step:
    """The parent delegates once. A child session does two things that must not happen twice."""
    text = first_text(request)
    done = sum(each.role == "tool" for each in request.messages)
    if text in GOALS:
        if done < 2:
            return calls("terminal", command=f"echo {done} >> '{text}.txt'")
        return says(f"{text} is done.")
    if text == "Go":
        return says("All done.") if done else delegate(*GOALS)
    return says("Fine.")


def background_model(request: Request) -> Step:
    text = first_text(request)
    done = sum(each.role == "tool" for each in request.messages)
    if text == "Go" and done < len(GOALS):
        return delegate(GOALS[done], background=True)
    return says("All started.") if text == "Go" else model(request)


async def _records(stage: Stage) -> dict[str, tuple[Record, ...]]:
    async with stage.app() as app:
        found = await app.archive.recent(limit=None)
        return {info.id: await app.archive.records(info.id) for info in found}


def _check_effects(stage: Stage) -> None:
    for goal in GOALS:
        path = stage.work / f"{goal}.txt"
        lines = path.read_text().split() if path.exists() else []
        # A command that was killed while it ran has an unknown outcome and is not repeated.
        assert max(Counter(lines).values(), default=0) <= 1, (goal, lines)


def _check_children(sessions: dict[str, tuple[Record, ...]]) -> None:
    children = {id: records for id, records in sessions.items() if id.startswith("sub_")}
    assert len(children) == 3
    for id, records in children.items():
        check_journal(records)
        outcome = read_outcome(records)
        assert (outcome.is_finished, outcome.status) == (True, "completed"), id


async def _survive(root: Path, point: str) -> bool:
    """Whether the run died there."""
    async with ScriptedServer(model) as server:
        stage = Stage(root, server)
        without_skills(stage.home)
        ended = await stage.ask("Go", kill_at=point)
        assert ended.code in (-signal.SIGKILL, 0), ended
        sessions = await _records(stage)
        parents = [id for id in sessions if not id.startswith("sub_")]
        if not parents:
            said = await stage.ask("Go")
            assert said.code == 0, said
            parents = [id for id in await _records(stage) if not id.startswith("sub_")]
        (parent,) = parents
        again = await stage.ask("And now?", resume=parent)
        assert (again.code, again.err) == (0, ""), again
        sessions = await _records(stage)
        check_journal(sessions[parent])
        _check_children(sessions)
        _check_effects(stage)
        results = [r.event.result for r in sessions[parent] if isinstance(r.event, ToolFinished)]
        (result,) = results
        answer = json.loads(result.text)
        assert [each["status"] for each in answer["results"]] == ["completed"] * 3
        assert [each["summary"] for each in answer["results"]] == [f"{g} is done." for g in GOALS]
        assert server.violations == []
        end_processes(stage.home)
    return ended.code != 0


async def _points(root: Path) -> tuple[str, ...]:
    names = root / "names"
    async with ScriptedServer(model) as server:
        stage = Stage(root, server)
        without_skills(stage.home)
        ended = await stage.ask("Go", kill_at=f"?{names}")
        assert (ended.code, ended.out) == (0, "All done.\n"), ended
    return walk(names)


async def test_a_tree_continues_where_it_stopped(tmp_path: Path) -> None:
    died = [await _survive(tmp_path / point, point) for point in QUICK]
    assert all(died)


@pytest.mark.slow
async def test_a_tree_survives_a_death_at_every_point(tmp_path: Path) -> None:
    points = await _points(tmp_path / "all")
    names = sorted({point.partition(":")[0] for point in points})
    assert {"child.opened", "child.received", "child.finished"} <= set(names)
    most = Counter(point.partition(":")[0] for point in points)
    deaths = [
        f"{name}:{random.Random(f'{seed} {name}').randint(1, most[name])}"
        for seed in range(SEEDS)
        for name in names
    ]
    died = await _survive_all(tmp_path, deaths)
    assert died > len(deaths) * 0.9


async def _survive_all(root: Path, deaths: Sequence[str]) -> int:
    room = asyncio.Semaphore(2)

    async def one(number: int, point: str) -> bool:
        async with room:
            try:
                return await _survive(root / f"{number} {point}", point)
            except BaseException as error:
                error.add_note(f"killed at {point}")
                raise

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(one(*each)) for each in enumerate(deaths)]
    return sum(run.result() for run in runs)


async def _announce(root: Path, point: str) -> bool:
    """Background tasks: a process dies at the point, another one goes on."""
    async with ScriptedServer(background_model) as server:
        stage = Stage(root, server)
        without_skills(stage.home)
        first = await stage.hold("-", "Go", kill_at=point)
        session_id = await line(first)
        try:
            async with asyncio.timeout(5):
                await first.wait()
            died = True
        except TimeoutError:
            died = False
        ended = await finished(first)
        if not session_id:
            assert ended.code == -signal.SIGKILL, ended
            (session_id,) = [id for id in await _records(stage) if not id.startswith("sub_")]
        second = await stage.hold(session_id)
        assert await line(second) == session_id

        async def is_announced(owner: str = session_id) -> bool:
            return len(_announced((await _records(stage))[owner])) >= 3

        await until(is_announced, SECONDS)
        # A second announcement would come at once.
        await asyncio.sleep(0.3)
        await finished(second)
        sessions = await _records(stage)
        announced = _announced(sessions[session_id])
        children = sorted(id for id in sessions if id.startswith("sub_"))
        assert sorted(announced) == children
        _check_children(sessions)
        _check_effects(stage)
        assert server.violations == []
        end_processes(stage.home)
    return died


def _announced(records: Sequence[Record]) -> list[str]:
    """The child sessions whose results the owner has received."""
    received = [r.event for r in records if isinstance(r.event, MessageReceived)]
    return [each.key.partition(":")[0] for each in received if each.key.startswith("sub_")]


@pytest.mark.parametrize("point", ["child.received:2", "child.finished:1", "child.announced:1"])
async def test_a_background_result_is_announced_once(tmp_path: Path, point: str) -> None:
    assert await _announce(tmp_path, point)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_background_result_is_announced_once_whenever_the_owner_dies(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for name in ("child.opened", "child.received", "tool.started", "tool.effect", "turn.ended",
                 "child.finished", "child.announced", "message.received"):  # fmt: skip
        point = f"{name}:{chance.randint(1, 3)}"
        await _announce(tmp_path / point, point)
