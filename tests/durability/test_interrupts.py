"""Stop means stop: within a second, whatever runs, and the session goes on afterwards."""

from __future__ import annotations

import asyncio
import signal
import time
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from hermes.core.commands import Interrupt, Say
from hermes.core.events import ApprovalAsked, QuestionAsked, TurnEnded
from hermes.core.messages import AssistantMessage
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.testing.faults import hangs, paced
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step, calls, fails, says
from tests.durability.observing import eventually, is_running, running
from tests.durability.scenarios import shape_of
from tests.durability.stage import SECONDS, Ended, Stage, finished, line
from tests.timing import check_in_time, tried_until_in_time

STOP_SECONDS = 1.0
FIRST = "Do it."

STUBBORN = "trap '' TERM INT; "


async def stopped(
    stage: Stage, process: Process, number: signal.Signals = signal.SIGINT
) -> tuple[Ended, str]:
    """How the run ended after the signal, and its session; the turn ended in time."""
    at = time.time()
    process.send_signal(number)
    ended = await finished(process)
    (session_id,) = await stage.session_ids()
    *_, last = await stage.records(session_id)
    assert isinstance(last.event, TurnEnded) and last.event.reason == "interrupted"
    assert ended.code == 130 and "Traceback" not in ended.err
    check_in_time(last.at - at, STOP_SECONDS)
    return ended, session_id


async def goes_on(stage: Stage, session_id: str) -> None:
    ended = await stage.ask("Go on.", resume=session_id)
    assert ended == Ended(0, "Going on.\n", "")
    assert stage.server.violations == []


def until_go_on(step: Step) -> Rule[Request]:
    """A model that does this and nothing else until it is told to go on."""
    return lambda request: says("Going on.") if request.last_text.endswith("Go on.") else step


@tried_until_in_time
async def test_in_a_silent_model_call(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(hangs())) as server:
        stage = Stage(tmp_path, server)
        process = await stage.start(*stage.asking(FIRST))
        await server.received.reaches(1)
        ended, session_id = await stopped(stage, process)
        assert ended.out == ""
        await server.departed.reaches(1)
        await goes_on(stage, session_id)


@tried_until_in_time
async def test_a_query_stops_when_its_terminal_closes(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(hangs())) as server:
        stage = Stage(tmp_path, server)
        *options, _, prompt = stage.asking(FIRST)
        process = await stage.start(*options, "chat", "-q", prompt)
        assert process.stdin is not None
        process.stdin.close()
        await server.received.reaches(1)
        _, session_id = await stopped(stage, process, signal.SIGHUP)
        await goes_on(stage, session_id)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@tried_until_in_time
async def test_in_the_middle_of_an_answer(tmp_path: Path, number: signal.Signals) -> None:
    slow = paced(says("word " * 2_000), chunk=5, between_seconds=0.02)
    async with ScriptedServer(until_go_on(slow)) as server:
        stage = Stage(tmp_path, server)
        process = await stage.start(*stage.asking(FIRST), "--json")
        while "text_delta" not in await line(process):
            pass
        _, session_id = await stopped(stage, process, number)
        said, cut = fold(await stage.records(session_id)).messages
        assert shape_of([said]) == [("user", FIRST)]
        assert isinstance(cut, AssistantMessage) and cut.stop == "interrupted"
        assert cut.text and ("word " * 2_000).startswith(cut.text)
        shown = await stage.run("sessions", "show", session_id)
        assert shown.out.endswith(f"{cut.text}\n(interrupted)\n")
        await goes_on(stage, session_id)


@pytest.mark.parametrize("deaf", ["", STUBBORN])
@tried_until_in_time
async def test_in_a_running_command(tmp_path: Path, deaf: str) -> None:
    # Nobody else on this machine sleeps as long.
    seconds = [str(10**6 + time.time_ns() % 10**9 + n) for n in range(2)]
    script = f"{deaf}echo $$ > pids; sleep {seconds[0]} & echo $! >> pids; sleep {seconds[1]}"

    def sleepers() -> list[int]:
        return [pid for each in seconds for pid in running("sleep", each)]

    async with ScriptedServer(until_go_on(calls("terminal", command=script))) as server:
        stage = Stage(tmp_path, server)
        process = await stage.start(*stage.asking(FIRST))
        noted = stage.work / "pids"
        await eventually(lambda: noted.exists() and noted.read_text().count("\n") == 2)
        # A confined command may have numbers of its own for its processes.
        await eventually(lambda: len(sleepers()) == 2)
        pids = sleepers()
        ended, session_id = await stopped(stage, process)
        assert ended.out == ""
        assert not any(map(is_running, pids))
        await goes_on(stage, session_id)


@tried_until_in_time
async def test_in_the_wait_before_another_try(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(fails(529))) as server:
        stage = Stage(tmp_path, server)
        process = await stage.start(*stage.asking(FIRST))
        await server.received.reaches(1)
        ended, session_id = await stopped(stage, process)
        assert ended.out == ""
        assert server.received.count == 1
        await goes_on(stage, session_id)


@tried_until_in_time
async def test_in_an_unfinished_turn_that_another_message_waits_for(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(hangs())) as server:
        stage = Stage(tmp_path, server)
        await stage.ask(FIRST, kill_at="model.called:1")
        (session_id,) = await stage.session_ids()
        process = await stage.start(*stage.asking("And this.", resume=session_id))
        await server.received.reaches(1)
        ended, _ = await stopped(stage, process)
        assert ended.out == ""
        await goes_on(stage, session_id)


async def test_while_the_program_is_loaded(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(hangs())) as server:
        stage = Stage(tmp_path, server)
        process = await stage.start(*stage.asking(FIRST))
        memory = Path(f"/proc/{process.pid}/maps")
        await eventually(lambda: "msgspec" in memory.read_text())
        process.send_signal(signal.SIGINT)
        ended = await finished(process)
        assert ended.code in (130, -signal.SIGINT)
        assert (ended.out, ended.err) in (("", ""), ("", "Interrupted.\n"))


async def test_on_the_way_to_the_first_request(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(hangs())) as server:
        stage = Stage(tmp_path, server)
        process = await stage.start(*stage.asking(FIRST))
        await eventually(lambda: stage.home.joinpath("hermes.db").exists())
        process.send_signal(signal.SIGINT)
        ended = await finished(process)
        assert ended.code == 130
        assert (ended.out, ended.err) in (("", ""), ("", "Interrupted.\n"))


@tried_until_in_time
async def test_right_after_the_message(tmp_path: Path) -> None:
    async with ScriptedServer(until_go_on(hangs())) as server:
        stage = Stage(tmp_path, server)
        async with stage.app() as app:
            session = await app.open(SessionRequest(source="cli", attended=False))
            await session.send(Say(text=FIRST))
            await _interrupted(session)
            *_, last = await app.archive.records(session.id)
            assert isinstance(last.event, TurnEnded) and last.event.reason == "interrupted"
        await goes_on(stage, session.id)
        assert server.received.count == 1


@pytest.mark.parametrize(
    ("step", "awaited"),
    [
        (calls("terminal", command="git push --force"), ApprovalAsked),
        (calls("clarify", question="Which one?"), QuestionAsked),
    ],
)
@tried_until_in_time
async def test_while_a_person_is_asked(
    tmp_path: Path, step: Step, awaited: type[ApprovalAsked | QuestionAsked]
) -> None:
    async with ScriptedServer(until_go_on(step)) as server:
        stage = Stage(tmp_path, server)
        async with stage.app(asks=True) as app:
            session = await app.open(SessionRequest(source="cli", attended=True))
            events = session.subscribe()
            await session.send(Say(text=FIRST))
            async with asyncio.timeout(SECONDS):
                async for record in events:
                    if isinstance(record.event, awaited):
                        break
            await _interrupted(session)
            await session.send(Say(text="Go on."))
            await session.wait_until_idle()
            assert shape_of(session.transcript.messages)[-1] == ("assistant", "Going on.")
    assert server.violations == []


async def _interrupted(session: Session) -> None:
    at = time.monotonic()
    async with asyncio.timeout(SECONDS):
        await session.send(Interrupt())
        await session.wait_until_idle()
    check_in_time(time.monotonic() - at, STOP_SECONDS)
