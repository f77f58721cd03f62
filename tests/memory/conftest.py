"""A memory in a folder of its own, and short ways to change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core.world import World
from hermes.memory.entries import ChangeOutcome, ChangeSource, MemoryLimits, Operation, Target
from hermes.memory.memories import Memories

HERE = ChangeSource(
    kind="session", session_id="s1", turn_id="t1", n=2, person="owner", surface="cli"
)
PERSON = ChangeSource(kind="person", person="owner", surface="cli")


def scan(text: str) -> str:
    return "prompt_injection" if "ignore all rules" in text else ""


class Notes:
    """Memory, as tests speak of it."""

    def __init__(
        self, folder: Path, *, limits: MemoryLimits | None = None, world: World | None = None
    ):
        self.folder = folder / "memories"
        self.memories = Memories(
            self.folder,
            world=world or World(),
            scan=scan,
            limits=limits or MemoryLimits(),
            version="1",
        )

    async def add(self, text: str, target: Target = "memory", **more: str) -> ChangeOutcome:
        wish = (Operation(action="add", content=text),)
        return await self.memories.change(target, wish, source=HERE, **more)

    async def replace(
        self, old: str, new: str, target: Target = "memory", **more: str
    ) -> ChangeOutcome:
        wish = (Operation(action="replace", content=new, old_text=old),)
        return await self.memories.change(target, wish, source=HERE, **more)

    async def remove(self, old: str, target: Target = "memory", **more: str) -> ChangeOutcome:
        wish = (Operation(action="remove", old_text=old),)
        return await self.memories.change(target, wish, source=HERE, **more)

    async def texts(self, target: Target = "memory") -> list[str]:
        return [e.text for e in await self.memories.entries() if e.target == target]

    def file(self, target: Target = "memory") -> Path:
        return self.folder / ("MEMORY.md" if target == "memory" else "USER.md")


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    notes = Notes(tmp_path)
    yield notes
    notes.memories.close()
