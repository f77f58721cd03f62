"""A message is answered exactly once, whatever the platform does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.errors import PlatformUnreachable, PostRejected, PostUncertain, TargetGone
from hermes.core.events import MessageReceived
from hermes.core.world import World
from hermes.surfaces.gateway.platform import Address
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step
from tests.durability.stage import Stage
from tests.surfaces.gateway.fake import (
    ABILITIES,
    Failing,
    FakePlatform,
    echo,
    gateway,
    running,
    virtual,
)

HOME = Address(platform="fake", chat_id="home")


async def test_a_message_is_answered_in_its_chat(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        assert await own.say("hello") == ["You said: hello"]
        (post,) = own.fake.seen("post")
        assert post.to.chat_id == "c1"
        assert post.post is not None
        assert post.post.reply_to == "in1"
        assert await own.ledger.open_messages() == ()
        assert await own.ledger.open_posts() == ()


async def test_a_chat_is_one_conversation_and_another_chat_another(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        for text, chat in (("one", "c1"), ("two", "c1"), ("three", "c2")):
            await own.say(text, chat=chat)
        assert len(await own.session_ids()) == 2
        assert [len(r.body["messages"]) for r in own.stage.server.requests] == [2, 4, 2]


async def test_a_message_delivered_again_is_answered_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        event = own.event("hello")
        await asyncio.gather(*(own.service.receive(event) for _ in range(5)))
        await own.idle()
        await own.service.receive(event)
        await own.idle()
        assert own.fake.texts == ["You said: hello"]


async def test_messages_of_a_chat_are_answered_in_order(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        for n in range(4):
            await own.say(f"number {n}")
        assert own.fake.texts == [f"You said: number {n}" for n in range(4)]


async def test_what_came_while_the_gateway_was_down_is_answered_in_order(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path / "stage", server)
        async with running(stage, start=False) as own:
            own.service._is_draining = True  # stores only
            for n in range(3):
                await own.deliver(f"number {n}")
            own.fake.messages.clear()
            fake = own.fake
        async with running(stage, fake=fake) as own:
            await own.idle()
            assert own.fake.texts == [f"You said: number {n}" for n in range(3)]
            assert await own.ledger.open_messages() == ()


async def test_strangers_leave_no_trace(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        assert await own.say("hello", sender="stranger", chat_type="group") == []
        assert own.fake.calls == []
        assert await own.session_ids() == []
        own.access.pairing = "Your code is ABCD."
        assert await own.say("hello", sender="stranger") == ["Your code is ABCD."]
        assert await own.ledger.open_messages() == ()


async def test_an_event_with_an_invalid_id_is_dropped(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        assert await own.say("hello", chat="../etc") == []
        assert await own.ledger.open_messages() == ()


async def test_a_platform_that_fails_briefly_is_tried_three_times(tmp_path: Path) -> None:
    async with gateway(tmp_path, world=virtual()) as own:
        clock = own.clock
        own.fake.failing += [
            Failing(error=PlatformUnreachable),
            Failing(error=PlatformUnreachable, retry_after=7.0),
        ]
        await clock.run_until(own.say("hello"))
        assert own.fake.texts == ["You said: hello"]
        first, second, third = (call.at for call in own.fake.seen("post"))
        assert 1.0 <= second - first <= 1.2
        assert third - second == pytest.approx(7.0)


async def test_an_answer_waits_for_a_platform_that_is_offline(tmp_path: Path) -> None:
    async with gateway(tmp_path, world=virtual()) as own:
        clock = own.clock
        own.fake.offline_error = PlatformUnreachable
        await own.deliver("hello")
        await clock.advance(100)
        assert own.fake.texts == []
        own.fake.offline_error = None
        await clock.run_until(own.idle())
        assert own.fake.texts == ["You said: hello"]


async def test_refused_markup_is_sent_as_plain_text_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        own.fake.failing.append(Failing(error=PostRejected))
        await own.say("hello")
        posts = [call.post for call in own.fake.seen("post") if call.post is not None]
        assert [post.is_plain for post in posts] == [False, True]
        own.fake.failing += [Failing(error=PostRejected)] * 2
        assert await own.say("again") == []
        assert await own.ledger.open_messages() == ()


async def test_a_chat_that_is_gone_gets_nothing_for_a_day(tmp_path: Path) -> None:
    async with gateway(tmp_path, world=virtual()) as own:
        clock = own.clock
        own.fake.failing.append(Failing(error=TargetGone))
        states = []
        for n in range(3):
            report = await own.service.send(HOME, "news", key=f"news:{n}")
            states.append(report.state)
            await clock.advance(50_000)
        assert states == ["abandoned", "abandoned", "confirmed"]
        assert len(own.fake.seen("post")) == 2


@pytest.mark.parametrize("resolution", ["key", "read_back"])
async def test_an_uncertain_post_is_resolved_and_not_doubled(
    tmp_path: Path, resolution: str
) -> None:
    abilities = replace(ABILITIES, resolution=resolution)
    async with gateway(tmp_path, abilities=abilities) as own:
        own.fake.failing.append(Failing(error=PostUncertain, is_sent=True))
        assert await own.say("hello") == ["You said: hello"]
        own.fake.failing.append(Failing(error=PostUncertain, is_sent=False))
        assert await own.say("again") == ["You said: again"]


@pytest.mark.parametrize("resolution", ["key", "read_back"])
async def test_a_platform_that_stays_away_is_asked_later_about_a_post(
    tmp_path: Path, resolution: str
) -> None:
    abilities = replace(ABILITIES, resolution=resolution)
    async with gateway(tmp_path, abilities=abilities, world=virtual()) as own:
        own.fake.failing.extend(Failing(error=PostUncertain) for _ in range(5))
        assert await own.clock.run_until(own.say("hello")) == ["You said: hello"]
        assert await own.clock.run_until(own.say("again")) == ["You said: again"]


async def test_a_post_that_nobody_can_resolve_is_mentioned_at_the_next_contact(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path, abilities=replace(ABILITIES, resolution="none")) as own:
        own.fake.failing.append(Failing(error=PostUncertain))
        assert await own.say("hello") == []
        told, answer = await own.say("again")
        assert told.startswith("My last reply may not have arrived: “You said: hello”")
        assert answer == "You said: again"
        assert await own.say("third") == ["You said: third"]
        assert await own.ledger.open_posts() == ()


async def test_doubts_survive_a_restart(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path / "stage", server)
        abilities = replace(ABILITIES, resolution="none")
        async with running(stage, abilities=abilities) as own:
            own.fake.failing.append(Failing(error=PostUncertain))
            await own.say("hello")
        async with running(stage, abilities=abilities) as own:
            assert own.fake.texts == []
            assert len(await own.say("again", key="k2")) == 2


async def test_a_message_of_another_part_is_split_and_sent_once(tmp_path: Path) -> None:
    async with gateway(tmp_path, abilities=replace(ABILITIES, max_chars=200)) as own:
        text = "\n".join(f"line {n} with some words" for n in range(20))
        report = await own.service.send(HOME, text, key="job:1")
        assert (report.state, len(report.message_ids)) == ("confirmed", len(own.fake.texts))
        assert len(own.fake.texts) > 1
        again = await own.service.send(HOME, text, key="job:1")
        assert again.message_ids == report.message_ids
        assert len(own.fake.messages) == len(report.message_ids)


async def test_a_message_that_cannot_be_sent_now_is_sent_later(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path / "stage", server)
        async with running(stage, world=virtual()) as own:
            clock = own.clock
            own.fake.offline_error = PlatformUnreachable
            report = await clock.run_until(own.service.send(HOME, "news", key="job:2"))
            assert report.state == "waiting"
        fake = FakePlatform(World(), ABILITIES)
        async with running(stage, fake=fake) as own:
            async with asyncio.timeout(30):
                while not fake.texts:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert fake.texts == ["news"]


async def test_a_turn_that_is_cut_by_a_shutdown_continues_in_the_next_process(
    tmp_path: Path,
) -> None:
    release = asyncio.Event()

    async def rule(request: Request) -> Step:
        if not release.is_set():
            await release.wait()
        return echo(request)

    async with ScriptedServer(rule) as server:
        stage = Stage(tmp_path / "stage", server)
        async with running(stage) as own:
            await own.deliver("a long task")
            await server.received.reaches(1)
            assert [each.platform for each in own.service.running()] == ["fake"]
            await own.service.drain(0.0)
            assert own.fake.texts == []
            release.set()
        async with running(stage, start=False) as own:
            await own.service.start()
            await own.idle()
            (text,) = own.fake.texts
            assert "was restarted while you worked" in text
            assert await own.ledger.open_messages() == ()
            received = [r.event for r in await own.records()]
            keys = [each.key for each in received if isinstance(each, MessageReceived)]
            assert keys == ["fake:k1", "fake:k1:resume1"]
