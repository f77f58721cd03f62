"""Reactions show the state of messages, answer questions, and are told to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes.codec.values import replace
from hermes.core.errors import PlatformUnreachable, TargetGone
from hermes.core.events import ApprovalAnswered
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.stage import Stage
from tests.surfaces.gateway.fake import (
    ABILITIES,
    SETTINGS,
    Failing,
    FakePlatform,
    Gateway,
    echo,
    gateway,
    running,
    until,
    virtual,
)

REACTING = replace(ABILITIES, reactions=True, choices="reactions")


def shown(own: Gateway) -> list[tuple[str, str]]:
    return [(call.message_id, call.text) for call in own.fake.seen("react")]


async def test_reactions_show_that_a_message_was_seen_and_answered(tmp_path: Path) -> None:
    async with gateway(tmp_path, abilities=REACTING, reactions=True) as own:
        await own.say("hello")
        assert shown(own) == [("in1", "👀"), ("in1", "✅")]
        assert await own.ledger.open_posts() == ()
    async with gateway(tmp_path / "off", abilities=REACTING) as own:
        await own.say("hello")
        assert shown(own) == []


async def test_the_last_reaction_is_set_when_the_platform_is_back(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        stage = Stage(tmp_path / "stage", server, settings=SETTINGS)
        options: dict[str, Any] = {"abilities": REACTING, "reactions": True}
        async with running(stage, world=virtual(), **options) as own:
            errors = [Failing(error=PlatformUnreachable, on="react") for _ in range(9)]
            own.fake.failing.extend(errors)
            await own.clock.run_until(own.say("hello"))
            assert own.fake.texts == ["You said: hello"]
            assert len(await own.ledger.open_posts()) == 1
        fake = FakePlatform(World(), REACTING)
        async with running(stage, fake=fake, **options) as own:
            await until(lambda: shown(own) == [("in1", "✅")])
            assert own.fake.texts == []


async def test_a_reaction_to_a_deleted_message_does_not_end_the_chat(tmp_path: Path) -> None:
    async with gateway(tmp_path, abilities=REACTING, reactions=True) as own:
        own.fake.failing.extend(Failing(error=TargetGone, on="react") for _ in range(2))
        assert await own.say("hello") == ["You said: hello"]
        assert await own.say("again") == ["You said: again"]


async def test_a_reaction_answers_a_question(tmp_path: Path) -> None:
    def risky(request: Request) -> Step:
        if not request.results:
            return calls("terminal", command="sudo ls /root")
        return says("Done.")

    async with gateway(tmp_path, risky, asks=True, abilities=REACTING) as own:
        await own.deliver("do it")
        await until(lambda: own.fake.messages)
        (message_id, (_, post)), *_ = own.fake.messages.items()
        assert "✅ Allow once" in post.text and "❌ Deny" in post.text
        # Some clients add a mark to an emoji, and other emoji mean nothing.
        await own.deliver("", reaction="👍", message_id=message_id)
        await own.deliver("", reaction="❌\ufe0f", message_id=message_id, sender="stranger")
        await own.deliver("", reaction="❌\ufe0f", message_id=message_id)
        await own.idle()
        found = [r.event for r in await own.records() if isinstance(r.event, ApprovalAnswered)]
        assert [(each.choice, each.by) for each in found] == [("deny", "u1")]
        assert await own.ledger.open_messages() == ()


async def test_the_model_learns_of_a_reaction_with_the_next_message(tmp_path: Path) -> None:
    async with gateway(tmp_path, abilities=REACTING) as own:
        await own.say("hello")
        assert await own.say("", reaction="🎉", message_id="m1", name="Ann") == []
        assert len(own.stage.server.requests) == 1
        await own.say("what do I think of it?")
        request = own.stage.server.requests[-1]
        assert '["Ann" reacted to your message with "🎉".]' in str(request.body["messages"])


async def test_a_conversation_does_not_begin_with_a_reaction(tmp_path: Path) -> None:
    async with gateway(tmp_path, abilities=REACTING) as own:
        assert await own.say("", reaction="🎉", message_id="m9") == []
        assert await own.session_ids() == []
        assert await own.ledger.open_messages() == ()
