"""Faults that meet a running program. Each says what happens between two messages, or during one,
and how it ends; the second message may fail, the third may not."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hermes.testing.faults import cut
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.durability.stage import Stage
from tests.durability.test_full_disk import fill
from tests.faults.malformed_answers import UNUSABLE, USABLE
from tests.matrix.ground import Ground, Outcome
from tests.matrix.surfaces import Surface

LONG = "word " * 100_000
Part = Callable[[Ground, Surface], Awaitable[None]]


async def nothing(_ground: Ground, _surface: Surface) -> None:
    return


class Fault(NamedTuple):
    """`before` comes before the second message, `heal` after it. `size` is that of the disk. With
    `restarts`, the program may have ended and is started again; with `lossy`, messages may be gone;
    with `must_fail`, the second message cannot be answered."""

    before: Part = nothing
    heal: Part = nothing
    size: str = ""
    settings: str = ""
    restarts: bool = False
    lossy: bool = False
    must_fail: bool = False


async def _fill(ground: Ground, _surface: Surface) -> None:
    fill(ground.disk)


async def _free(ground: Ground, _surface: Surface) -> None:
    ground.rules.clear()
    (ground.disk / "filler").unlink(missing_ok=True)


async def _fill_in_reply(ground: Ground, _surface: Surface) -> None:
    def rule(_request: Request) -> Step:
        fill(ground.disk)
        return says(LONG)

    ground.rules["two"] = rule


async def _fill_in_tool(ground: Ground, _surface: Surface) -> None:
    def rule(request: Request) -> Step:
        if request.results:
            return says("You said: two")
        return calls("terminal", command=f"cat /dev/zero > {ground.disk}/filler; seq 9000")

    ground.rules["two"] = rule


async def _fill_in_compaction(ground: Ground, surface: Surface) -> None:
    """The conversation is too long; the disk is full when the model is asked for a summary."""
    ground.rules["long"] = lambda _request: says("word " * 24_000 + "You said: long")
    with suppress(TimeoutError):
        await surface.say("long")

    def rule(_request: Request) -> Step:
        with suppress(AssertionError):
            fill(ground.disk)
        return says(LONG)

    ground.rules["two"] = rule


async def _take_lease(ground: Ground, _surface: Surface) -> None:
    """Another process takes the session while the model answers."""

    async def rule(_request: Request) -> Step:
        del ground.rules["two"]
        stage = Stage(ground.root / "thief", ground.server)
        stage.home = ground.home
        async with stage.app() as other:
            beats = "UPDATE owners SET beat = 0"
            await other.journal.writing(lambda tx: tx.db.execute(beats).fetchall())
            for info in await other.archive.recent():
                await other.journal.release(await other.journal.acquire(info.id))
        return says("You said: two")

    ground.rules["two"] = rule


def _limit_files(free: int, start: int) -> Part:
    """So many descriptors are left to the running process; a new one has `start`."""

    async def before(ground: Ground, surface: Surface) -> None:
        ground.prefix = ("prlimit", f"--nofile={start}:20000")
        most = _last_descriptor(surface.pid) + 1 + free
        _limit_process(surface.pid, f"--nofile={most}:20000")

    return before


def _last_descriptor(pid: int) -> int:
    folder = Path(f"/proc/{pid}/fd")
    return max(int(each.name) for each in folder.iterdir()) if pid else 0


def _limit_process(pid: int, *options: str) -> None:
    if pid:
        words = ["prlimit", "--pid", str(pid), *options]
        subprocess.run(words, check=False, capture_output=True)


def _memory_of(pid: int) -> int:
    """The address space of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * 4096 if pid else 0


async def _limit_memory(ground: Ground, surface: Surface) -> None:
    """Almost nothing more than the process has now."""
    ground.prefix = ("prlimit", "--as=68000000:unlimited")
    _limit_process(surface.pid, f"--as={_memory_of(surface.pid) + 2_000_000}:unlimited")
    ground.rules["two"] = lambda _request: says(LONG * 20)


async def _lift(ground: Ground, surface: Surface) -> None:
    ground.prefix = ()
    ground.rules.clear()
    ground.control()
    _limit_process(surface.pid, "--as=unlimited", "--nofile=20000:20000")


async def _no_threads(ground: Ground, _surface: Surface) -> None:
    ground.control(threads=1)


async def _remove_home(ground: Ground, surface: Surface) -> None:
    def rule(_request: Request) -> Step:
        shutil.rmtree(ground.home)
        return says("You said: two")

    ground.rules["two"] = rule


async def _new_home(ground: Ground, _surface: Surface) -> None:
    ground.rules.clear()
    shutil.rmtree(ground.home, ignore_errors=True)
    ground.configure()


def _jump(seconds: float) -> Part:
    async def before(ground: Ground, _surface: Surface) -> None:
        ground.control(clock=seconds)

    return before


async def _keep_time(ground: Ground, _surface: Surface) -> None:
    ground.control()


FAULTS: dict[str, Fault] = {
    "disk full before a message": Fault(_fill, _free, size="6m", must_fail=True),
    "disk full during the reply": Fault(_fill_in_reply, _free, size="6m", must_fail=True),
    "disk full during a tool": Fault(_fill_in_tool, _free, size="6m", must_fail=True),
    "disk full during a compaction": Fault(
        _fill_in_compaction,
        _free,
        size="6m",
        settings="providers: {custom: {models: {m: {context_length: 16384}}}}\n",
        must_fail=True,
    ),
    "lease lost in a turn": Fault(_take_lease),
    "six open files left": Fault(_limit_files(6, 14), _lift, restarts=True),
    "one open file left": Fault(_limit_files(1, 12), _lift, restarts=True),
    "memory limited": Fault(_limit_memory, _lift, restarts=True),
    "no further threads": Fault(_no_threads, _lift, restarts=True),
    "home removed in a turn": Fault(
        _remove_home, _new_home, restarts=True, lossy=True, must_fail=True
    ),
    "clock a day ahead": Fault(_jump(86_400), _keep_time),
    "clock a year back": Fault(_jump(-31_536_000), _keep_time),
    "clock ten years ahead": Fault(_jump(315_360_000), _keep_time),
}


async def say_malformed(ground: Ground, surface: Surface, count: int) -> dict[str, Outcome]:
    """The model answers each message with another malformed call, and then well."""
    chosen = random.Random(surface.name).sample(sorted(UNUSABLE | USABLE), count)
    outcomes: dict[str, Outcome] = {}
    for number, name in enumerate(chosen):
        text = f"malformed {number}"
        step = (UNUSABLE | USABLE)[name]

        def rule(request: Request, step: Step = step, text: str = text) -> Step:
            return says(f"You said: {text}") if request.results else step

        ground.rules[text] = rule
        outcomes[text] = await surface.say(text)
        assert outcomes[text].answer == f"You said: {text}", (name, outcomes[text])
    return outcomes


async def say_through_resets(ground: Ground, surface: Surface, count: int) -> dict[str, Outcome]:
    """The connection to the model is reset once in every answer."""
    chance = random.Random(surface.name)
    outcomes: dict[str, Outcome] = {}
    for number in range(count):
        text = f"reset {number}"
        broken = [True]

        def rule(_request: Request, text: str = text, broken: list[bool] = broken) -> Step:
            whole = says(f"You said: {text}")
            if broken.pop() if broken else False:
                return cut(whole, after_chunks=chance.randint(2, 3), reset=True)
            return whole

        ground.rules[text] = rule
        outcomes[text] = await surface.say(text)
        assert f"You said: {text}" in outcomes[text].answer, outcomes[text]
    return outcomes


async def wait_settled(surface: Surface) -> None:
    """Let what the fault interrupted come to its end."""
    await asyncio.sleep(0.5 if surface.pid else 0)
