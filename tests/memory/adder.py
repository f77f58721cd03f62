"""A process that adds entries to a memory: `adder.py FOLDER NAME COUNT`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hermes.core.world import World
from hermes.memory.entries import ChangeSource, MemoryApplied, MemoryLimits, Operation
from hermes.memory.memories import Memories


async def main(folder: str, name: str, count: int) -> None:
    memories = Memories(
        Path(folder), world=World(), scan=lambda _: "", limits=MemoryLimits(memory=100_000)
    )
    for number in range(count):
        wish = (Operation(action="add", content=f"{name} says {number}"),)
        source = ChangeSource(kind="session", session_id=name)
        outcome = await memories.change("memory", wish, source=source, key=f"{name} {number}")
        assert isinstance(outcome, MemoryApplied)
    memories.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
