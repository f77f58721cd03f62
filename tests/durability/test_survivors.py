"""After `kill -9`, no command lives on once the session is resumed, wherever it ran: foreground
commands are ended and reported, background processes are found again and can be ended."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.config.execution_settings import TerminalSettings
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
from tests.workspaces.containers import usable as usable_container
from tests.workspaces.sshd import Sshd
from tests.workspaces.sshd import missing as ssh_missing

# How a command runs a program for a long time; most hide it in one way or another.
_DETACH = "python3 -c 'import os; os.fork() and os._exit(0); os.setsid(); {run}'"
_SPAWN = "python3 -c 'import subprocess as s; a = {program}; [s.Popen(a) for _ in a]; s.run(a)'"
SHAPES = (
    "sleep {n}",
    "sleep {n} | cat",
    "trap '' TERM HUP INT; sleep {n}; sleep {n}",
    "env -i sleep {n}",
    "bash -c 'exec -a innocent sleep {n}'",
    "while true; do sleep {n}; done",
    _DETACH.format(run='os.execlp("sleep", "sleep", "{n}")') + "; sleep {n}",
    'python3 -c \'import os; os.execvpe("sleep", ["sleep", "{n}"], dict())\'',
    _SPAWN.format(program='["sleep", "{n}"]'),
)
# Minimal images have no Python.
SHELL_SHAPES = tuple(shape for shape in SHAPES if "python3" not in shape)
CONFINEMENTS: tuple[Wanted, ...] = ("off", "landlock", "bubblewrap")
BACKENDS = (*CONFINEMENTS, "ssh", "container")
MODES = ("foreground", "pty", "background", "no state")
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
    """The model runs the command, after that always in the foreground. Asked to check, it lists the
    processes and ends the first, if the command ran in the background, and runs another command
    otherwise."""

    def __init__(self, command: str, mode: str) -> None:
        self._command = command
        self._mode = mode
        self.asked = asyncio.Event()
        # Hermes continues its turn when it is resumed.
        self.killed = False

    def __call__(self, request: Request) -> Step:
        messages = request.body["messages"]
        last = messages[-1]
        if self.killed and "Check." not in str(messages):
            return says("Interrupted.")
        if not self.killed and not any(message["role"] == "tool" for message in messages):
            self.asked.set()
            how: JsonObject = {"timeout": 600}
            if self._mode in ("pty", "background"):
                how = {self._mode: True}
            return calls("terminal", command=self._command, **how)
        if "Check." not in str(messages):
            # Hermes would leave if it had nothing to wait for.
            return calls("terminal", command=self._command, timeout=600)
        if "Check." in str(last):
            if self._mode == "background":
                return calls("process", action="list")
            return calls("terminal", command="echo here")
        if found := re.search(r"proc_\w+", str(last)) if "running" in str(last) else None:
            return calls("process", action="kill", session_id=found[0])
        return says("Done.")


class Backend:
    """Where commands run, with its settings and what it needs."""

    def __init__(self, name: str, sshd: Sshd | None) -> None:
        self.name = name
        self.shapes = SHELL_SHAPES if name == "container" else SHAPES
        self._sshd = sshd

    def settings(self, mode: str) -> str:
        terminal: JsonObject = {"persistent_shell": mode != "no state"}
        if self.name in CONFINEMENTS:
            terminal["confinement"] = self.name
        else:
            chosen = self._sshd.settings() if self._sshd else usable_container()
            assert isinstance(chosen, TerminalSettings)
            terminal |= {
                key: getattr(chosen, key)
                for key in TerminalSettings.__struct_fields__
                if key.startswith(("backend", "ssh_", "docker_", "container_"))
            }
        return f"terminal: {encode(terminal).decode()}\n"

    def remove(self, session_id: str) -> None:
        if self.name == "container":
            chosen = usable_container()
            assert isinstance(chosen, TerminalSettings)
            engine = (shutil.which(chosen.backend) or "", *chosen.docker_engine_args)
            label = f"label=hermes.session={session_id}"
            listing = subprocess.run(
                (*engine, "ps", "-aq", "--filter", label),
                capture_output=True,
                text=True,
                check=True,
            )
            subprocess.run(
                (*engine, "rm", "-f", "-v", *listing.stdout.split()),
                capture_output=True,
                check=False,
            )


@pytest.fixture
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    name = request.param
    if name in CONFINEMENTS:
        means, obstacles = find_means(name, os.environ["PATH"])
        if name != "off" and means is None:
            pytest.skip("; ".join(obstacles))
    else:
        why = ssh_missing() if name == "ssh" else usable_container()
        if why and isinstance(why, str):
            pytest.skip(why)
    sshd = Sshd(tmp_path / "sshd") if name == "ssh" else None
    yield Backend(name, sshd)
    if sshd:
        sshd.stop()


async def die_and_resume(
    root: Path, backend: Backend, mode: str, chance: random.Random, *, alone: bool
) -> bool:
    """Run a command, kill Hermes at some moment, with its watchdog if it is to die `alone`, and
    resume the session. Return whether the command ran when Hermes died."""
    number = next(_numbers)
    script = Script(chance.choice(backend.shapes).format(n=number), mode)
    at_start = chance.random() < 0.25
    async with ScriptedServer(script) as server:
        stage = Stage(root, server, settings=backend.settings(mode))
        without_skills(stage.home)
        process = await stage.start(*stage.asking("Wait for it."))
        ended = asyncio.ensure_future(killed_after(process, 120))
        if at_start:
            # About when the command starts.
            await script.asked.wait()
            await asyncio.sleep(chance.uniform(0, 0.2))
        else:
            await eventually(lambda: bool(running(number)))
            await asyncio.sleep(chance.uniform(0, 0.3))
        for watchdog in watchdogs(process) if alone else ():
            os.kill(watchdog, signal.SIGKILL)
        ran = bool(running(number))
        script.killed = True
        os.kill(process.pid, signal.SIGKILL)
        assert (await ended).code == -signal.SIGKILL
        (session_id,) = await stage.session_ids()
        try:
            resumed = await stage.ask("Check.", resume=session_id)
            assert (resumed.code, resumed.err) == (0, "")
            # The command that Hermes just sent to another machine may be about to start.
            await eventually(lambda: running(number) == [], 5.0)
        finally:
            backend.remove(session_id)
        transcript = fold(await stage.records(session_id))
    results = [m.results[0].text for m in transcript.messages if isinstance(m, ToolMessage)]
    if ran and mode != "background" and not at_start:
        assert results[0].startswith("interrupted: outcome unknown")
        assert "here" in results[1] and "[Hermes was stopped while this command ran; " in results[1]
    return ran


async def many(root: Path, backend: Backend, times: int, seed: int) -> None:
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for turn in range(times):
        mode = MODES[turn % len(MODES)]
        alone = turn // len(MODES) % 2 == 1
        try:
            ran = await die_and_resume(root / str(turn), backend, mode, chance, alone=alone)
        except BaseException as error:
            error.add_note(f"{backend.name}, kill {turn}, {mode}, alone={alone}")
            raise
        counts[mode] += ran
    running_then = ", ".join(f"{mode} {counts[mode]}" for mode in MODES)
    print(  # noqa: T201
        f"{backend.name}: {times} kills, command running at {counts.total()} ({running_then}), "
        "0 survivors"
    )


@pytest.mark.parametrize("backend", CONFINEMENTS, indirect=True)
async def test_no_command_outlives_a_killed_hermes(tmp_path: Path, backend: Backend) -> None:
    await many(tmp_path, backend, 8, seed=1)


@pytest.mark.parametrize("backend", ["ssh"], indirect=True)
async def test_no_remote_command_outlives_a_killed_hermes(tmp_path: Path, backend: Backend) -> None:
    await many(tmp_path, backend, 8, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
async def test_no_command_outlives_a_hundred_killed_ones(tmp_path: Path, backend: Backend) -> None:
    await many(tmp_path, backend, 100, seed=2)


@pytest.mark.parametrize("backend", ["off", "ssh"], indirect=True)
async def test_the_watchdog_needs_no_resumed_session(tmp_path: Path, backend: Backend) -> None:
    number = next(_numbers)
    async with ScriptedServer(Script(f"sleep {number}", "foreground")) as server:
        stage = Stage(tmp_path / "stage", server, settings=backend.settings("foreground"))
        without_skills(stage.home)
        process = await stage.start(*stage.asking("Wait for it."))
        ended = asyncio.ensure_future(killed_after(process, 60))
        await eventually(lambda: bool(running(number)))
        os.kill(process.pid, signal.SIGKILL)
        await ended
        await eventually(lambda: not running(number))
