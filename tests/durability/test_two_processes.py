"""Two processes and one session: one is in it, the other leaves its words and gets its answer."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.codec.json import decode
from hermes.codec.values import JsonObject
from hermes.core.transcript import fold
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.durability.kills import check_journal
from tests.durability.scenarios import shape_of
from tests.durability.stage import Ended, Stage, finished, line

LEFT = "Another process has this session open; the message is queued there."


def echo(request: Request) -> Step:
    return says(f"You said: {request.last_text}")


@asynccontextmanager
async def holding(
    stage: Stage, *words: str, kill_at: str = ""
) -> AsyncIterator[tuple[Process, str]]:
    """A holder that is in its session, and the session's id."""
    holder = await stage.hold(*words, kill_at=kill_at)
    try:
        yield holder, await line(holder)
    finally:
        await finished(holder)


async def said(stage: Stage, session_id: str) -> list[str]:
    records = await stage.records(session_id)
    check_journal(records)
    return [text for _, text in shape_of(fold(records).messages)]


async def test_the_owner_answers_and_the_other_shows_it(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path, server)
        async with holding(stage, "-", "one") as (_, session_id):
            assert await stage.ask("two", resume=session_id) == Ended(
                0, "You said: two\n", f"{LEFT}\n"
            )
        assert await said(stage, session_id) == ["one", "You said: one", "two", "You said: two"]
    assert server.violations == []


async def test_the_events_of_the_answer_come_as_they_do_at_home(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path, server)
        async with holding(stage, "-", "one") as (_, session_id):
            words = [*stage.asking("two", resume=session_id), "--json", "--usage-file", "usage"]
            ended = await stage.run(*words)
    events = [decode(JsonObject, row) for row in ended.out.splitlines()]
    assert [event["type"] for event in events] == [
        "message_received",
        "turn_started",
        "model_called",
        "call_settled",
        "reply_added",
        "turn_ended",
    ]
    assert {event["session_id"] for event in events} == {session_id}
    usage = decode(JsonObject, stage.work.joinpath("usage").read_bytes())
    assert (usage["session_id"], usage["api_calls"]) == (session_id, 1)


async def test_words_for_a_busy_owner_wait_for_their_turn(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slowly(request: Request) -> Step:
        await go_on.wait()
        return echo(request)

    async with ScriptedServer(slowly) as server:
        stage = Stage(tmp_path, server)
        holder = await stage.hold("-", "one")
        await server.received.reaches(1)
        (session_id,) = await stage.session_ids()
        others = [await stage.start(*stage.asking(text, resume=session_id)) for text in "ab"]
        for other in others:
            assert await line(other, err=True) == LEFT
        go_on.set()
        answers = await asyncio.gather(*map(finished, others))
        assert [answer[:2] for answer in answers] == [(0, "You said: a\n"), (0, "You said: b\n")]
        await finished(holder)
        assert sorted(await said(stage, session_id))[-2:] == ["b", "one"]


async def test_words_left_with_somebody_who_dies_are_taken_up(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path, server)
        async with holding(stage, "-", "one", "--deaf") as (holder, session_id):
            other = await stage.start(*stage.asking("two", resume=session_id))
            assert await line(other, err=True) == LEFT
            holder.kill()
            assert (await finished(other))[:2] == (0, "You said: two\n")
        assert await said(stage, session_id) == ["one", "You said: one", "two", "You said: two"]


async def test_words_left_with_somebody_who_leaves_are_taken_up(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path, server)
        async with holding(stage, "-", "one", "--deaf") as (holder, session_id):
            other = await stage.start(*stage.asking("two", resume=session_id))
            assert await line(other, err=True) == LEFT
            await finished(holder)
            assert (await finished(other))[:2] == (0, "You said: two\n")
        assert await said(stage, session_id) == ["one", "You said: one", "two", "You said: two"]


async def test_an_owner_that_dies_over_the_words_loses_and_doubles_nothing(tmp_path: Path) -> None:
    for point in ("message.received:2", "turn.started:2", "reply.received:2", "turn.ended:2"):
        async with ScriptedServer(echo) as server:
            stage = Stage(tmp_path / point, server)
            async with holding(stage, "-", "one", kill_at=point) as (holder, session_id):
                ended = await stage.ask("two", resume=session_id)
                assert (ended.code, ended.out) == (0, "You said: two\n"), (point, ended)
                assert await holder.wait() == -signal.SIGKILL
            found = await said(stage, session_id)
            assert found == ["one", "You said: one", "two", "You said: two"], point


async def test_who_does_not_wait_is_answered_all_the_same(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slowly(request: Request) -> Step:
        await go_on.wait()
        return echo(request)

    async with ScriptedServer(slowly) as server:
        stage = Stage(tmp_path, server)
        holder = await stage.hold("-", "one")
        await server.received.reaches(1)
        (session_id,) = await stage.session_ids()
        other = await stage.start(*stage.asking("two", resume=session_id))
        assert await line(other, err=True) == LEFT
        other.send_signal(signal.SIGINT)
        assert await finished(other) == Ended(130, "", "")
        go_on.set()
        await server.received.reaches(2)
        await stage.until_ended(session_id, turns=2)
        await finished(holder)
        assert await said(stage, session_id) == ["one", "You said: one", "two", "You said: two"]
