"""After `kill -9`, no foreground command lives on once the session is resumed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from hermes.core.messages import ToolMessage
from hermes.core.transcript import fold
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from hermes.workspaces.confinement.sandbox import Wanted, find_means
from hermes.workspaces.process_tree import list_members
from tests.durability.kills import without_skills
from tests.durability.observing import eventually
from tests.durability.stage import Stage, killed_after

# How a command runs a program for a long time; most hide it in one way or another.
_DETACH = "python3 -c 'import os; os.fork() and os._exit(0); os.setsid(); {run}'"
SHAPES = (
    "sleep {n}",
    "sleep {n} | cat",
    "trap '' TERM HUP INT; sleep {n}; sleep {n}",
    "env -i sleep {n}",
    "bash -c 'exec -a innocent sleep {n}'",
    "while true; do sleep {n}; done",
    _DETACH.format(run='os.execlp("sleep", "sleep", "{n}")') + "; sleep {n}",
    'python3 -c \'import os; os.execvpe("sleep", ["sleep", "{n}"], dict())\'',
    'python3 -c \'import os; [os.fork() for _ in range(3)]; os.execlp("sleep", "sleep", "{n}")\'',
)
BACKENDS: tuple[Wanted, ...] = ("off", "landlock", "bubblewrap")
_numbers = count(400_000 + os.getpid() % 1_000 * 100)


def running(number: int) -> list[int]:
    """The processes that sleep for so many seconds, and the shells that wait for them."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and str(number).encode() in (
                folder.joinpath("cmdline").read_bytes()
            ):
                found.append(int(folder.name))
    return found


def watchdogs(process: Process) -> list[int]:
    found = []
    for one in list_members(process.pid):
        with suppress(OSError):
            if b"hermes-watchdog" in Path(f"/proc/{one.pid}/cmdline").read_bytes():
                found.append(one.pid)
    return found


class Script:
    """The model runs the command once, and has something to say afterwards."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __call__(self, request: Request) -> Step:
        messages = request.body["messages"]
        if not any(message["role"] == "tool" for message in messages):
            return calls("terminal", command=self._command, timeout=600)
        if "Check." in str(messages[-1]):
            return calls("terminal", command="echo here")
        return says("Done.")


async def die_and_resume(root: Path, wanted: Wanted, chance: random.Random, *, alone: bool) -> None:
    """Run a command, kill Hermes at some moment, with its watchdog if it is to die `alone`, and
    resume the session."""
    number = next(_numbers)
    settings = f"terminal: {{confinement: '{wanted}'}}\n"
    async with ScriptedServer(Script(chance.choice(SHAPES).format(n=number))) as server:
        stage = Stage(root, server, settings=settings)
        without_skills(stage.home)
        process = await stage.start(*stage.asking("Wait for it."))
        ended = asyncio.ensure_future(killed_after(process, 60))
        await eventually(lambda: bool(running(number)))
        await asyncio.sleep(chance.uniform(0, 0.3))
        for watchdog in watchdogs(process) if alone else ():
            os.kill(watchdog, signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        assert (await ended).code == -signal.SIGKILL
        (session_id,) = await stage.session_ids()
        resumed = await stage.ask("Check.", resume=session_id)
        assert (resumed.code, resumed.err) == (0, "")
        assert running(number) == []
        transcript = fold(await stage.records(session_id))
    results = [m.results[0].text for m in transcript.messages if isinstance(m, ToolMessage)]
    assert results[0].startswith("interrupted: outcome unknown")
    assert "here" in results[1] and "[Hermes was stopped while this command ran; " in results[1]


def skip_unless_possible(wanted: Wanted) -> None:
    means, obstacles = find_means(wanted, os.environ["PATH"])
    if wanted != "off" and means is None:
        pytest.skip("; ".join(obstacles))


async def many(root: Path, wanted: Wanted, times: int, seed: int) -> None:
    skip_unless_possible(wanted)
    chance = random.Random(seed)
    for turn in range(times):
        await die_and_resume(root / str(turn), wanted, chance, alone=turn % 2 == 1)


@pytest.mark.parametrize("wanted", BACKENDS)
async def test_no_command_outlives_a_killed_hermes(tmp_path: Path, wanted: Wanted) -> None:
    await many(tmp_path, wanted, 7, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", BACKENDS)
async def test_no_command_outlives_a_hundred_killed_ones(tmp_path: Path, wanted: Wanted) -> None:
    await many(tmp_path, wanted, 34, seed=2)


async def test_the_watchdog_needs_no_resumed_session(tmp_path: Path) -> None:
    number = next(_numbers)
    async with ScriptedServer(Script(f"sleep {number}")) as server:
        stage = Stage(tmp_path, server)
        without_skills(stage.home)
        process = await stage.start(*stage.asking("Wait for it."))
        ended = asyncio.ensure_future(killed_after(process, 60))
        await eventually(lambda: bool(running(number)))
        os.kill(process.pid, signal.SIGKILL)
        await ended
        await eventually(lambda: not running(number))
