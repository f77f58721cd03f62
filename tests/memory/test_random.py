"""Any changes, by two at once: nothing is lost, nothing is too long, and the past adds up."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hermes.core.errors import HermesError
from hermes.memory.entries import (
    TARGETS,
    Action,
    MemoryLimits,
    Operation,
    entries_size,
    split_entries,
)
from tests.memory.conftest import HERE, PERSON, Notes

ACTIONS: tuple[Action, ...] = ("add", "add", "replace", "remove")
LIMITS = MemoryLimits(memory=160, user=90)


def wish(chance: random.Random, known: list[str]) -> Operation:
    text = " ".join(chance.choice(("red", "blue", "tea", "rose", "§x", "é")) for _ in range(4))
    old = chance.choice(known or ["nothing"])
    cut = old[: chance.randint(1, len(old))]
    action = chance.choice(ACTIONS)
    return Operation(action=action, content=text, old_text=cut)


async def step(chance: random.Random, notes: Notes) -> None:
    target = chance.choice(TARGETS)
    known = await notes.texts(target)
    match chance.randint(0, 9):
        case 0:
            await notes.memories.undo(source=PERSON)
        case 1:
            for waiting in (await notes.memories.pending())[:1]:
                await notes.memories.accept(waiting.id, source=PERSON)
        case 2 if known and notes.file(target).exists():
            notes.file(target).write_text("\n§\n".join(known[1:]))
        case 3:
            await notes.memories.change(target, (wish(chance, known),), source=HERE, held="web")
        case number:
            wishes = [wish(chance, known) for _ in range(1 + number % 3)]
            await notes.memories.change(target, wishes, source=HERE)


@pytest.mark.parametrize("seed", range(4))
async def test_the_entries_are_always_what_the_changes_say(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    both = [Notes(tmp_path, limits=LIMITS), Notes(tmp_path, limits=LIMITS)]
    for _ in range(60):
        notes = chance.choice(both)
        try:
            await step(chance, notes)
        except HermesError:
            continue
        entries = await notes.memories.entries()
        assert await notes.memories.as_of(float("inf")) == entries
        for target in TARGETS:
            texts = [entry.text for entry in entries if entry.target == target]
            assert entries_size(texts) <= LIMITS.of(target)
            assert len(set(texts)) == len(texts)
            file = notes.file(target)
            assert set(split_entries(file.read_text()) if file.exists() else ()) == set(texts)
