"""The connection is lost at any byte of a call: it is run once, as it was meant, or never."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.core.commands import Say
from hermes.core.events import ReplyAdded, ToolStarted, TurnEnded
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.faults import cut, dripped
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls_cut_short, says
from hermes.testing.wires.table import WireName
from tests.durability.stage import Stage
from tests.faults.ground import FIRST, RIGHT, SECOND, WHOLE, WIRES, HastyClock

# Longer than the answer with the call in any format: cuts after its end are none.
MOST_BYTES = 3_200
STEP = 111


class CutOnce:
    """A model whose first answer to every session is this one."""

    def __init__(self) -> None:
        self.first: Step | None = None

    def __call__(self, request: Request) -> Step:
        if request.last_text.endswith(SECOND):
            return says("Fine.")
        if request.results:
            return says("Done.")
        step, self.first = self.first or WHOLE, None
        return step


async def cut_all(root: Path, wire: WireName, answers: Iterable[Step]) -> None:
    """Each answer in a session of its own: the call is run once and right, and one more turn
    is fine."""
    model = CutOnce()
    async with ScriptedServer(model, keep=1) as server:
        stage = Stage(root, server)
        async with stage.app(wire, world=World(clock=HastyClock())) as app:
            for answer in answers:
                model.first = answer
                await _two_turns(app, stage.work)
                assert server.violations == [], answer


async def _two_turns(app: App, folder: Path) -> None:
    session = await app.open(SessionRequest(source="cli", attended=False, cwd=str(folder)))
    for text in (FIRST, SECOND):
        await session.send(Say(text=text))
        await session.wait_until_idle()
    events = [record.event for record in await app.archive.records(session.id)]
    await app.close_session(session)
    assert [e.reason for e in events if isinstance(e, TurnEnded)] == ["done", "done"]
    assert sum(isinstance(event, ToolStarted) for event in events) == 1
    calls = [c for e in events if isinstance(e, ReplyAdded) for c in e.message.calls]
    assert [call.arguments for call in calls] == [RIGHT]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_at_some_bytes(tmp_path: Path, wire: WireName) -> None:
    """At other ones in each format."""
    places = range(WIRES.index(wire) * STEP // len(WIRES), MOST_BYTES, STEP)
    await cut_all(tmp_path, wire, (cut(WHOLE, after_bytes=place) for place in places))


@pytest.mark.parametrize("wire", WIRES)
async def test_an_output_limit_at_some_letters(tmp_path: Path, wire: WireName) -> None:
    raw = '{"path": "out/right.txt", "content": "All of it'
    answers = (
        calls_cut_short("write_file", raw[:size]) for size in range(WIRES.index(wire), len(raw), 12)
    )
    await cut_all(tmp_path, wire, answers)


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_at_every_byte(tmp_path: Path, wire: WireName) -> None:
    places = range(MOST_BYTES)
    await cut_all(tmp_path, wire, (cut(WHOLE, after_bytes=place) for place in places))


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
async def test_a_reset_at_every_byte_of_a_slow_answer(tmp_path: Path, wire: WireName) -> None:
    slow = dripped(WHOLE, size=16)
    places = range(0, MOST_BYTES, 3)
    await cut_all(tmp_path, wire, (cut(slow, after_bytes=place, reset=True) for place in places))
