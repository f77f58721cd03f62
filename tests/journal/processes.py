"""Starting the worker of this room as a real process."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 240


async def start(what: str, home: Path, session_id: str, *rest: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.journal.worker",
        what,
        str(home),
        session_id,
        *rest,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )


async def line(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        return (await process.stdout.readline()).decode().strip()


async def say(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    await process.stdin.drain()


async def end(process: Process) -> tuple[list[int], str]:
    """The record numbers that were said to be durable, and stderr."""
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return [int(number) for number in out.split()], err.decode()
