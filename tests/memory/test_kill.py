"""Killed around a change of memory: never lost once it was made, never made twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.kill import walk
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.stage import Stage

FACT = "The user lives in Lisbon"
PROMPT = "Remember where I live"
POINTS = ("memory.", "tool.effect")


def model(request: Request) -> Step:
    """It remembers when it is told to, and has nothing more to do when that is done."""
    said = [each.text for each in request.messages if each.role == "user"]
    if said == [PROMPT] and not request.results:
        return calls("memory", target="user", action="add", content=FACT)
    return says("Noted.")


async def points(root: Path) -> list[str]:
    names = root / "names"
    async with ScriptedServer(model) as server:
        await Stage(root, server).ask(PROMPT, kill_at=f"?{names}")
    return [each for each in walk(names) if each.startswith(POINTS)]


async def survives(root: Path, point: str) -> None:
    async with ScriptedServer(model) as server:
        stage = Stage(root, server)
        assert (await stage.ask(PROMPT, kill_at=point)).code == -9
        (session_id,) = await stage.session_ids()
        ended = await stage.ask("Go on", resume=session_id)
        assert (ended.code, ended.err) == (0, "")
        async with stage.app() as app:
            memories = app.memory.of()
            assert [entry.text for entry in await memories.entries()] == [FACT]
            (change,) = await memories.changes()
            assert (change.source.session_id, change.source.kind) == (session_id, "session")
        assert stage.home.joinpath("memories", "USER.md").read_text() == f"{FACT}\n"


async def test_a_change_survives_death_at_any_point_around_it(tmp_path: Path) -> None:
    found = await points(tmp_path / "look")
    assert {each.partition(":")[0] for each in found} >= {
        "memory.before_commit",
        "memory.committed",
        "memory.written",
    }
    for number, point in enumerate(found):
        await survives(tmp_path / str(number), point)


@pytest.mark.slow
async def test_a_change_survives_death_in_the_middle_of_anything(tmp_path: Path) -> None:
    names = tmp_path / "names"
    async with ScriptedServer(model) as server:
        await Stage(tmp_path / "look", server).ask(PROMPT, kill_at=f"?{names}")
    for number, point in enumerate(walk(names)):
        if not point.startswith(("message.", "journal.")) and "turn.end" not in point:
            await survives(tmp_path / str(number), point)
