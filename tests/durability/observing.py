"""Looking from outside: whether a process runs, and waiting until something is so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

LOOK_SECONDS = 0.02


async def eventually(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if is_so():
                return
            await asyncio.sleep(LOOK_SECONDS)


def is_running(pid: int) -> bool:
    """A process with this number is there, and not as a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def running(*words: str) -> list[int]:
    """The processes of this machine that were started with just these words."""
    wanted = b"".join(word.encode() + b"\0" for word in words)
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if line.read_bytes() == wanted:
                found.append(int(line.parent.name))
        except OSError:
            continue
    return found
