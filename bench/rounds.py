"""What one tool round costs and whether it stays so; how long eight commands in one turn take."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.measure import own_cpu, report, rounded
from bench.serving import served
from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import ModelCalled, ToolFinished, ToolStarted
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.steps import Step, calls, calls_many, says

# Where people keep their work: what lies among temporary files is confined by slower means.
PLACE = Path.home() / ".cache" / "hermes-bench"
WINDOW = 1_000_000


class CommitCount:
    """Counts the commits that a run makes."""

    def __init__(self) -> None:
        self.commits = 0

    def reach(self, name: str) -> None:
        self.commits += name == "journal.after_commit"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    todos = [calls("todo", todos=[{"id": "1", "content": f"step {n}"}]) for n in range(rounds)]
    shells = [calls("terminal", command=f"echo {n}") for n in range(60)]
    eight = calls_many(*(("terminal", {"command": f"sleep 0.2 && echo {n}"}) for n in range(8)))
    _with_app([*todos, says("done")], rounds, _tool_rounds)
    _with_app([*shells, says("done")], len(shells), _shell_rounds)
    _with_app([calls("terminal", command="true"), eight, says("done")], 1, _eight)


def _with_app(steps: list[Step], rounds: int, measure: object) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as folder, served(steps) as url:
        project = Path(folder) / "project"
        project.mkdir()
        env = {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "k",
            "HOME": str(Path.home()),
            "PATH": "/usr/bin:/bin",
        }
        asyncio.run(_run(Path(folder) / "home", project, env, rounds, measure))


async def _run(
    home: Path, project: Path, env: Mapping[str, str], rounds: int, measure: object
) -> None:
    count = CommitCount()
    # Room for all of it: how a conversation is shortened is measured elsewhere.
    flags = {"model.default": "test", "model.context_length": WINDOW}
    flags |= {"agent.max_turns": rounds + 10}
    config = load(Home(home), env=env, flags=flags)
    async with App(config, env=env, world=World(kill_point=count.reach)) as app:
        session = await app.open(SessionRequest(source="bench", attended=False, cwd=str(project)))
        assert callable(measure)
        await measure(session, rounds, count)


async def _tool_rounds(session: Session, rounds: int, count: CommitCount) -> None:
    events = session.subscribe()
    await session.send(Say(text="go"))
    marks: list[tuple[float, int]] = []
    async for record in events:
        if isinstance(record.event, ModelCalled):
            marks.append((own_cpu(), count.commits))
        if len(marks) > rounds:
            break
    await session.wait_until_idle()
    fifth = max(1, rounds // 5)
    early = (marks[2 * fifth][0] - marks[fifth][0]) / fifth
    late = (marks[-1][0] - marks[-1 - fifth][0]) / fifth
    report(
        "tool_round",
        rounds=rounds,
        cpu_ms_early=rounded(early * 1000, 3),
        cpu_ms_late=rounded(late * 1000, 3),
        ratio_late_to_early=rounded(late / early, 2),
        commits_per_round=rounded((marks[-1][1] - marks[0][1]) / rounds, 2),
        goal="cpu <= 3 ms, commits <= 2, flat",
    )


async def _shell_rounds(session: Session, rounds: int, _count: CommitCount) -> None:
    times: list[float] = []
    events = session.subscribe()
    await session.send(Say(text="go"))
    begun = time.perf_counter()
    async for record in events:
        if isinstance(record.event, ModelCalled):
            now = time.perf_counter()
            times.append(now - begun)
            begun = now
        if len(times) > rounds:
            break
    await session.wait_until_idle()
    ordered = sorted(times[5:])
    report(
        "shell_round",
        wall_ms=rounded(ordered[len(ordered) // 2] * 1000, 2),
        best_ms=rounded(ordered[0] * 1000, 2),
        goal="wall <= 10 ms, model call included",
    )


async def _eight(session: Session, _rounds: int, _count: CommitCount) -> None:
    events = session.subscribe()
    await session.send(Say(text="go"))
    started, finished = [], []
    async for record in events:
        if isinstance(record.event, ToolStarted):
            started.append(time.perf_counter())
        if isinstance(record.event, ToolFinished):
            finished.append(time.perf_counter())
        if len(finished) == 9:
            break
    await session.wait_until_idle()
    wall = finished[-1] - started[1]
    report(
        "eight_commands",
        wall_seconds=rounded(wall, 3),
        floor_sleep=0.2,
        ratio=rounded(wall / 0.2, 2),
        goal="wall <= 0.25",
    )


if __name__ == "__main__":
    main()
