"""What one tool round costs, and whether it stays so: CPU per round early and late in a turn."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.measure import own_cpu, report, rounded
from hermes.app.build import App
from hermes.app.opening import Opening
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import ModelCalled, ToolFinished
from hermes.core.world import World
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says


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
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder) / "home", Path(folder) / "project"
        project.mkdir()
        (project / "note.txt").write_text("one line\n")
        steps: list[Step] = []
        for n in range(rounds):
            steps.append(calls("todo", todos=[{"id": "1", "content": f"step {n}"}]))
        steps.append(says("done"))
        with _separate_server(steps) as url:
            env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k", "HOME": folder}
            asyncio.run(_measure(home, project, env, rounds))


def _separate_server(steps: list[Step]) -> _Server:
    return _Server(steps)


class _Server:
    """A model server in a process of its own, so that its CPU is not ours."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps
        self._pid = 0

    def __enter__(self) -> str:
        reader, writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(reader)
            asyncio.run(self._serve(writer))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            return pipe.readline().strip()

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)

    async def _serve(self, writer: int) -> None:
        async with ScriptedServer(self._steps, strict=False, keep=1) as server:
            os.write(writer, f"{server.url}\n".encode())
            await asyncio.Event().wait()


async def _measure(home: Path, project: Path, env: Mapping[str, str], rounds: int) -> None:
    count = CommitCount()
    flags = {"model.default": "test", "agent.max_turns": rounds + 10}
    config = load(Home(home), env=env, flags=flags)
    async with App(config, env=env, world=World(reach=count.reach)) as app:
        session = await app.open(Opening(source="bench", attended=False, cwd=str(project)))
        events = session.subscribe()
        await session.send(Say(text="go"))
        marks: list[tuple[float, int]] = []
        async for record in events:
            if isinstance(record.event, ModelCalled):
                marks.append((own_cpu(), count.commits))
            if len(marks) > rounds:
                break
        await session.settled()
        assert not isinstance(session.transcript.messages[-1], ToolFinished)
    tenth = max(1, rounds // 10)
    early = (marks[2 * tenth][0] - marks[tenth][0]) / tenth
    late = (marks[-1][0] - marks[-1 - tenth][0]) / tenth
    report(
        "tool_round",
        rounds=rounds,
        cpu_ms_early=rounded(early * 1000, 3),
        cpu_ms_late=rounded(late * 1000, 3),
        ratio_late_to_early=rounded(late / early, 2),
        commits_per_round=rounded((marks[-1][1] - marks[0][1]) / rounds, 2),
        goal="cpu <= 3 ms, commits <= 2, flat",
    )


if __name__ == "__main__":
    main()
