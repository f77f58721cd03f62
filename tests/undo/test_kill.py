"""A process that dies at any point loses nothing: the files come back all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.world import World
from hermes.testing.kill import kill_points
from tests.undo.conftest import Agent

SCRIPT = "rm -rf src; echo x > a; mv b c; mkdir e"
FILES = {"a": "a" * 1000, "b": "b", "src/x": "x", "src/y/z": "z", "big": "B" * 400_000}


async def work(folder: Path, point: str, what: str) -> None:
    agent = Agent(folder, world=World(kill_point=kill_points(point)))
    if what == "command":
        await agent.run(SCRIPT)
    elif what == "write":
        await agent.write("a", "other")
        await agent.delete("b")
    else:
        agent.undo()
    await agent.close()


def killed(folder: Path, point: str, what: str) -> bool:
    done = subprocess.run(
        (sys.executable, __file__, str(folder), point, what),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    return done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["undo.begun", "undo.ending"])
@pytest.mark.parametrize("what", ["command", "write"])
async def test_a_call_that_was_cut_off_is_taken_back(tmp_path: Path, point: str, what: str) -> None:
    agent = Agent(tmp_path)
    agent.fill(FILES)
    before = agent.picture()
    assert killed(tmp_path, point, what)
    if agent.picture() != before:
        agent.undo()
    assert agent.picture() == before
    await agent.close()


STEPS = [
    pytest.param(f"undo.step:{n}", marks=() if n in (2, 5) else pytest.mark.slow)
    for n in range(1, 8)
]


@pytest.mark.parametrize("point", ["undo.restoring", "undo.written", *STEPS])
async def test_an_undo_that_was_cut_off_is_finished_by_the_next(tmp_path: Path, point: str) -> None:
    agent = Agent(tmp_path)
    agent.fill(FILES)
    before = agent.picture()
    await agent.did(SCRIPT)
    await agent.close()
    assert killed(tmp_path, point, "undo")
    agent.undo()
    assert agent.picture() == before
    assert not [name for name in agent.names() if name.startswith(".hermes")]
    assert not [name for name in agent.names() if name.endswith(".undo")]
    await agent.close()


async def test_a_session_that_goes_on_ends_the_undo_of_the_dead_one(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.fill(FILES)
    before = agent.picture()
    await agent.did(SCRIPT)
    await agent.close()
    assert killed(tmp_path, "undo.step:2", "undo")
    agent.turn = "turn_2"
    await agent.did("echo later > f")
    assert not [name for name in agent.names() if name.startswith(".hermes")]
    agent.undo()
    agent.undo()
    assert agent.picture() == before
    await agent.close()


async def test_a_session_that_goes_on_writes_down_what_the_dead_one_did(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.fill(FILES)
    before = agent.picture()
    assert killed(tmp_path, "undo.ending", "command")
    agent.turn = "turn_2"
    await agent.did("echo later > a")
    agent.undo()
    assert (agent.root / "a").read_text() == "x\n"
    agent.undo()
    assert agent.picture() == before
    await agent.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
