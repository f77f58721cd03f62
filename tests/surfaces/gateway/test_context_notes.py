"""What the model learns about a chat without answering it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.core.events import MessageReceived
from hermes.surfaces.gateway.platform import Address
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step
from tests.durability.stage import Stage
from tests.surfaces.gateway.fake import SETTINGS, Gateway, echo, gateway, running, until

HERE = Address(platform="fake", chat_id="c1")


def sent(own: Gateway) -> str:
    """The messages of the newest request."""
    return str(own.stage.server.requests[-1].body["messages"][1:])


async def test_a_message_to_others_is_stored_and_not_answered(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        facts = {"chat_type": "group", "name": "Ann"}
        assert await own.say("the keys are in the drawer", is_addressed=False, **facts) == []
        assert own.stage.server.requests == []
        (answer,) = await own.say("where are they?", **facts)
        assert answer.endswith("\nwhere are they?")
        assert "the keys are in the drawer" in sent(own)
        received = [r.event for r in await own.records() if isinstance(r.event, MessageReceived)]
        assert [each.message.origin for each in received] == ["message:fake", "user"]
        assert await own.ledger.open_messages() == ()


async def test_commands_to_others_are_not_executed(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        assert await own.say("/new", is_addressed=False, chat_type="group") == []
        (answer,) = await own.say("!new", chat_type="group")
        assert answer.endswith("/new\n\n!new")


async def test_mirrored_text_is_in_the_session_of_the_chat_once(tmp_path: Path) -> None:
    async with gateway(tmp_path) as own:
        await own.service.send(HERE, "nobody talked here yet", key="j0", mirror=True)
        await own.say("hello")
        for _ in range(2):
            await own.service.send(HERE, "The backup has failed.", key="j1", mirror=True)
        await own.service.send(HERE, "not mirrored", key="j2")
        await own.idle()
        assert own.fake.texts[2:] == ["The backup has failed.", "not mirrored"]
        await own.say("why?")
        assert sent(own).count("The backup has failed.") == 1
        assert "not mirrored" not in sent(own)


async def test_mirrored_text_waits_for_a_running_turn(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def rule(request: Request) -> Step:
        await release.wait()
        return echo(request)

    async with gateway(tmp_path, rule) as own:
        await own.deliver("hello")
        await until(lambda: own.stage.server.requests)
        await own.service.send(HERE, "The backup has failed.", key="j1", mirror=True)
        release.set()
        await own.idle()
        assert own.fake.texts == ["The backup has failed.", "You said: hello"]
        assert len(own.stage.server.requests) == 1
        await own.say("why?")
        assert "The backup has failed." in sent(own)


async def test_what_was_not_yet_added_is_added_after_a_restart(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path / "stage", server, settings=SETTINGS)
        async with running(stage) as own:
            await own.say("hello")
            event = own.event("only for the others", key="late", is_addressed=False)
            # As if the process had died right after storing it.
            from hermes.codec.json import encode

            key = "agent:main:fake:dm:c1"
            assert await own.ledger.receive("fake", "late", key, encode(event).decode())
        async with running(stage) as own:
            await own.idle()
            await own.say("what did I miss?", key="k9")
            assert "only for the others" in sent(own)
            assert len(server.requests) == 2


async def test_a_hook_may_drop_and_change_messages(tmp_path: Path) -> None:
    def judge(event: dict[str, str], **_: object) -> dict[str, str] | None:
        if "spam" in event["text"]:
            return {"action": "skip", "reason": "spam"}
        return {"action": "rewrite", "text": "a kind word"} if "rude" in event["text"] else None

    async with gateway(tmp_path) as own:
        own.app.hooks.registry.add("pre_gateway_dispatch", judge, owner="test")
        assert await own.say("spam spam spam") == []
        assert await own.say("something rude") == ["You said: a kind word"]
        assert await own.say("hello") == ["You said: hello"]
        assert await own.ledger.open_messages() == ()
