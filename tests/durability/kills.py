"""One death and what comes after it: killed at a point, resumed, and compared with no death."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    Record,
    ReplyAdded,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
)
from hermes.core.transcript import fold
from hermes.skills.seeding import OPT_OUT
from hermes.testing.kill import walk
from hermes.testing.server import ScriptedServer
from hermes.testing.wires.table import WireName
from hermes.workspaces.process_tree import find_by_argument, kill_now
from tests.durability.scenarios import Scenario, shape_of
from tests.durability.stage import Stage, killed_after

WIRES: tuple[WireName, ...] = ("chat", "messages", "responses")
AT_ONCE = 2
LAST = "And what now?"

Kind = TypeVar("Kind", bound=DurableEvent)
NewScenario = Callable[[Path, int], Scenario]


class Death(NamedTuple):
    """`points` are settings of HERMES_KILL_AT, or seconds like "0.2 s": the run dies at the first,
    the run that goes on with it at the second, and so on. The seed varies what they do."""

    points: tuple[str, ...]
    seed: int = 0

    @property
    def wires(self) -> tuple[WireName, ...]:
        """In which format the last run goes on, and the two others."""
        return tuple(random.Random(str(self)).sample(WIRES, 3))

    def __str__(self) -> str:
        return f"{' then '.join(self.points)}, seed {self.seed}"


async def points_of(new: NewScenario, root: Path, seed: int = 0) -> tuple[str, ...]:
    """Every point that a run of this scenario passes, each time it does."""
    names = root / "names"
    async with ScriptedServer(lambda request: scenario.step(request)) as server:
        stage = Stage(root, server)
        scenario = new(stage.work, seed)
        ended = await stage.ask(scenario.prompt, kill_at=f"?{names}")
        end_processes(stage.home)
    assert (ended.code, ended.err, server.violations) == (0, "", [])
    return walk(names)


async def survive_all(new: NewScenario, root: Path, deaths: Iterable[Death]) -> int:
    """Two at a time, each in a home of its own; how many of them really died."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(death: Death) -> bool:
        async with room:
            try:
                return await survive(new, root / str(death), death)
            except BaseException as error:
                error.add_note(f"killed at {death}, then {death.wires}")
                raise

    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(one(death)) for death in deaths]
    return sum(run.result() for run in runs)


async def survive(new: NewScenario, root: Path, death: Death) -> bool:
    """False when the run was over before it could die: results that come at the same time share
    a commit, so not every run passes the same points."""
    async with ScriptedServer(lambda request: scenario.step(request)) as server:
        stage = Stage(root, server)
        without_skills(stage.home)
        scenario = new(stage.work, death.seed)
        try:
            died = await _die_and_go_on(stage, scenario, death)
        finally:
            end_processes(stage.home)
        assert server.violations == []
    return died


async def _die_and_go_on(stage: Stage, scenario: Scenario, death: Death) -> bool:
    died = await _die(stage, stage.asking(scenario.prompt), death.points[0])
    session_id = await _only_session(stage, scenario)
    left = [await stage.records(session_id)]
    for number, point in enumerate(death.points[1:]):
        await _die(stage, stage.asking(f"Again {number}", resume=session_id), point)
        left.append(await stage.records(session_id))
    later = [*_later(left[-1], scenario.prompt), LAST]
    ended = await stage.ask(LAST, resume=session_id, wire=death.wires[0])
    assert (ended.code, ended.err) == (0, ""), ended
    assert ended.out.endswith(f"{scenario.shape(LAST)[-1][1]}\n")
    records = await stage.records(session_id)
    transcript = fold(records)
    assert shape_of(transcript.messages) == scenario.shape(*later)
    check_journal(records)
    await scenario.check(left, transcript)
    await _check_home(stage, session_id, death.wires[1:])
    return died


async def _die(stage: Stage, words: Sequence[str], point: str) -> bool:
    if point.endswith(" s"):
        ended = await killed_after(await stage.start(*words), float(point.removesuffix(" s")))
    else:
        ended = await stage.run(*words, kill_at=point)
    assert ended.code in (-signal.SIGKILL, 0), ended
    return ended.code != 0


async def _only_session(stage: Stage, scenario: Scenario) -> str:
    found = await stage.session_ids()
    if not found:
        # Nothing was acknowledged, so the person says it again.
        said = await stage.ask(scenario.prompt)
        assert (said.code, said.err) == (0, ""), said
        found = await stage.session_ids()
    (session_id,) = found
    return session_id


def _later(records: Sequence[Record], prompt: str) -> list[str]:
    """What was said after the prompt and is safe in the journal."""
    said = [event.message.text for event in _events(records, MessageReceived)]
    assert said.count(prompt) == 1
    return said[1:]


async def _check_home(stage: Stage, session_id: str, wires: Sequence[WireName]) -> None:
    """The session is free, goes on in the other formats, and the journal is sound."""
    for wire in wires:
        await stage.say(session_id, LAST, wire)
    check_journal(await stage.records(session_id))
    verified = await stage.run("sessions", "verify")
    assert (verified.code, verified.err) == (0, ""), verified


def check_journal(records: Sequence[Record]) -> None:
    """Every message is taken by one turn, every turn ends once and well, every call is answered
    once, and no reply stands there twice."""
    assert [record.n for record in records] == list(range(1, len(records) + 1))
    received = [r.n for r in records if isinstance(r.event, MessageReceived)]
    taken = [n for r in records if isinstance(r.event, TurnStarted) for n in r.event.takes]
    assert taken == received
    started = [r.turn_id for r in records if isinstance(r.event, TurnStarted)]
    ended = [r.turn_id for r in records if isinstance(r.event, TurnEnded)]
    assert ended == started and len(set(started)) == len(started)
    assert {e.reason for e in _events(records, TurnEnded)} == {"done"}
    calls = Counter(c.id for e in _events(records, ReplyAdded) for c in e.message.calls)
    results = Counter(e.result.call_id for e in _events(records, ToolFinished))
    intended = Counter(e.call_id for e in _events(records, ToolIntended))
    assert calls == results == intended and set(calls.values()) <= {1}


def _events(records: Sequence[Record], kind: type[Kind]) -> list[Kind]:
    return [record.event for record in records if isinstance(record.event, kind)]


def without_skills(home: Path) -> None:
    """Those that come with the program are not put into this home: nobody uses them there, and to
    copy them takes a third of a short run."""
    (home / "skills").mkdir(parents=True)
    (home / "skills" / OPT_OUT).touch()


def end_processes(home: Path) -> None:
    """End the background processes that a test has started in this home."""
    for folder in home.glob("sessions/*/processes/*"):
        if pid := find_by_argument(str(folder)):
            kill_now(pid)
