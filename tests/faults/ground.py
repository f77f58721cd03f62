"""Where faults are tried out: a session whose model goes wrong, in a world that does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.core.commands import Say
from hermes.core.events import Record, ReplyAdded, ToolFinished, ToolStarted, TurnEnded
from hermes.core.messages import AssistantMessage, ToolCall
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.core.world import SystemClock, World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from hermes.testing.wires.table import WireName
from tests.durability.stage import Stage
from tests.timing import LeapingClock

WIRES: tuple[WireName, ...] = ("chat", "messages", "responses")
FIRST, SECOND, THIRD = "Write it.", "Once more.", "And then?"
CONTENT = "All of it, to the last letter: äöü 日本 🙂."
RIGHT: JsonObject = {"path": "out/right.txt", "content": CONTENT}
WHOLE = calls("write_file", **RIGHT)

# A model that is silent for so long counts as stuck.
STALE_SECONDS = 20.0
PAUSE_SECONDS = 0.02
STALE = f"agent: {{local_stream_stale_timeout: {STALE_SECONDS}}}\n"

Bend = Callable[[Step], Step]
Name = TypeVar("Name", bound=Hashable)


class HastyClock(LeapingClock):
    """Nobody sleeps."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Silence(SystemClock):
    """The clock of a model that waits only where it falls silent: there it is silent for too long
    as soon as somebody waits for it, and again as long as it stays so. On a busy machine any other
    may be late as well, and is not taken for a stuck one."""

    def __init__(self, listener: LeapingClock) -> None:
        self._listener = listener

    async def sleep(self, seconds: float) -> None:
        while seconds > 0:
            pause = min(seconds, PAUSE_SECONDS)
            await super().sleep(pause)
            self._listener.leap(STALE_SECONDS)
            seconds -= pause


class Bent:
    """A model that writes a file and says so; `bend` makes every answer of the first turn and the
    first answer of the second turn worse."""

    def __init__(self) -> None:
        self._bend: Bend = lambda step: step
        self._is_well = True

    def begin(self, bend: Bend) -> None:
        self._bend, self._is_well = bend, False

    def __call__(self, request: Request) -> Step:
        heard = [said.text for said in request.messages if said.role == "user"]
        step = says("Done.") if request.results else WHOLE
        if any(text.endswith(THIRD) for text in heard):
            return says("Fine.")
        if any(text.endswith(SECOND) for text in heard):
            bent, self._is_well = not self._is_well, True
            return self._bend(step) if bent else step
        return self._bend(step)


class Lived(NamedTuple):
    """What became of a session with such a model: how its first two turns ended, and why."""

    first: str
    second: str
    records: tuple[Record, ...]
    files: dict[str, str]

    @property
    def ends(self) -> tuple[str, str]:
        return self.first, self.second

    @property
    def run(self) -> list[ToolCall]:
        """The calls that were run."""
        started = {r.event.call_id for r in self.records if isinstance(r.event, ToolStarted)}
        return [call for call in _calls(self.records) if call.id in started]

    @property
    def replies(self) -> list[AssistantMessage]:
        return _replies(self.records)


async def live(root: Path, bends: Mapping[Name, Bend], wire: WireName) -> dict[Name, Lived]:
    """For each of the bends, a session of two turns with the bent model and, after it was closed, a
    third turn in another wire format. Whatever happened, the transcript is valid and only the
    right call was ever run."""
    model, other = Bent(), WIRES[(WIRES.index(wire) + 1) % len(WIRES)]
    clock = HastyClock()
    async with ScriptedServer(model, keep=1, clock=Silence(clock)) as server:
        stage = Stage(root, server, settings=STALE)
        async with stage.app(wire, world=World(clock=clock)) as app:
            sessions = {}
            for number, (name, bend) in enumerate(bends.items()):
                model.begin(bend)
                folder = stage.work / str(number)
                folder.mkdir()
                sessions[name] = (await _said(app, folder, FIRST, SECOND), folder)
                assert server.violations == [], name
        async with stage.app(other, world=World(clock=clock)) as app:
            lived = {name: await _resumed(app, *place) for name, place in sessions.items()}
            assert server.violations == []
    for name, life in lived.items():
        _check(name, life)
    return lived


async def _said(app: App, folder: Path, *texts: str, resume: str = "") -> str:
    opening = SessionRequest(source="cli", attended=False, cwd=str(folder), resume=resume)
    session = await app.open(opening)
    for text in texts:
        await session.send(Say(text=text))
        await session.wait_until_idle()
    await app.close_session(session)
    return session.id


async def _resumed(app: App, session_id: str, folder: Path) -> Lived:
    await _said(app, folder, THIRD, resume=session_id)
    records = await app.archive.records(session_id)
    first, second, third = (_ending(end) for end in _ends(records))
    assert third == "done"
    return Lived(first, second, records, _files(folder))


def _check(name: object, lived: Lived) -> None:
    """Nothing is left open, every call has one answer under an id of its own, and no file was
    written but the right one."""
    records = lived.records
    transcript = fold(records)
    assert (transcript.unanswered, transcript.turn_id, transcript.waiting) == ((), "", {}), name
    ids = [call.id for call in _calls(records)]
    answered = [r.event.result.call_id for r in records if isinstance(r.event, ToolFinished)]
    assert len(set(ids)) == len(ids) and sorted(answered) == sorted(ids), name
    assert all(call.arguments == RIGHT for call in lived.run if call.name == "write_file"), name
    assert lived.files in ({}, {"out/right.txt": CONTENT}), name


def _ending(ended: TurnEnded) -> str:
    """The reason, with the finer one where the turn did not end well."""
    return ended.reason if ended.reason == "done" else f"{ended.reason}: {ended.detail}"


def _ends(records: Sequence[Record]) -> list[TurnEnded]:
    return [record.event for record in records if isinstance(record.event, TurnEnded)]


def _replies(records: Sequence[Record]) -> list[AssistantMessage]:
    return [record.event.message for record in records if isinstance(record.event, ReplyAdded)]


def _calls(records: Sequence[Record]) -> list[ToolCall]:
    return [call for reply in _replies(records) for call in reply.calls]


def _files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}
