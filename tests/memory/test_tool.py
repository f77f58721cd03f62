"""What a model is told by its memory tool."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.core.messages import joined_text
from hermes.memory.entries import ChangeSource, MemoryLimits
from hermes.memory.tools import CLOSED, CallFacts, MemoryToolService, memory
from hermes.testing.context import ScriptedContext
from tests.memory.conftest import Notes


class Model(ScriptedContext):
    """Calls the tool, in one turn, each call with an id of its own."""

    def __init__(self, notes: Notes, held: str = "") -> None:
        super().__init__()
        self.count = 0

        async def witness(call_id: str) -> CallFacts:
            source = ChangeSource(kind="session", session_id="s", turn_id="t", call_id=call_id)
            return CallFacts(source=source, key=f"s t {self.count}", held=held)

        self._kept[MemoryToolService] = MemoryToolService(
            notes.memories, witness, targets=("memory", "user")
        )

    async def use(self, **arguments: object) -> JsonObject:
        self.count += 1
        output = await self.call(memory, **arguments)
        answer: JsonObject = json.loads(joined_text(output.parts))
        assert output.failed is not answer["success"]
        return answer


async def test_a_good_call_tells_how_full_it_is(notes: Notes) -> None:
    answer = await Model(notes).use(target="memory", action="add", content="one")
    assert answer == {
        "success": True,
        "done": True,
        "target": "memory",
        "usage": "0% — 3/2,200 chars",
        "entry_count": 1,
        "message": "Entry added.",
        "note": "New sessions see it; this session keeps its initial memory.",
    }


async def test_a_full_memory_shows_what_could_go(tmp_path: Path) -> None:
    notes = Notes(tmp_path, limits=MemoryLimits(memory=20))
    model = Model(notes)
    await model.use(target="memory", action="add", content="a" * 15)
    answer = await model.use(target="memory", action="add", content="b" * 10)
    assert answer["current_entries"] == ["a" * 15]
    assert answer["usage"] == "75% — 15/20 chars"
    assert "Consolidate" in answer["error"]


async def test_who_cannot_tidy_up_is_told_to_stop(notes: Notes) -> None:
    model = Model(notes)
    for _ in range(3):
        assert "done" not in await model.use(target="memory", action="remove", old_text="nothing")
    answer = await model.use(target="memory", action="add", content="something")
    assert (answer["success"], answer["done"]) == (False, True)
    assert await notes.texts() == []


async def test_a_batch_says_which_operation_was_bad(notes: Notes) -> None:
    answer = await Model(notes).use(
        target="user",
        operations=[{"action": "add", "content": "x"}, {"action": "replace", "content": "y"}],
    )
    assert answer["error"].startswith("Operation 2: old_text is missing")


async def test_what_is_held_is_not_called_saved(notes: Notes) -> None:
    answer = await Model(notes, held="because").use(target="user", action="add", content="x")
    assert answer["note"].startswith("Not saved yet (because)")
    assert answer["message"] == "It waits for approval."


async def test_effects_are_known_before_the_call(notes: Notes) -> None:
    arguments = memory.parameters.decode(
        {"target": "user", "operations": [{"action": "add", "content": "x"}]}
    )
    (effect,) = memory.effects(notes, arguments)  # type: ignore[arg-type]
    assert (effect.target, effect.action, effect.text) == ("user", "add", "x")  # type: ignore[union-attr]


async def test_without_a_memory_there_is_none() -> None:
    context = ScriptedContext()
    try:
        await context.call(memory, target="user", action="add", content="x")
    except Exception as error:
        assert str(error) == CLOSED
    else:
        raise AssertionError
