"""Conversations that start anew by themselves, also while nobody writes."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.values import replace
from hermes.surfaces.gateway.options import ResetOptions, ResetPolicy
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.gateway.fake import PROMPT, Gateway, echo, gateway, virtual

IDLE = ResetOptions(default=ResetPolicy(mode="idle", idle_minutes=60))
FLUSH = "Save what is worth remembering"


async def look(own: Gateway) -> None:
    """What the timer of the gateway does."""
    await own.service.reset_due()
    await own.clock.run_until(own.idle())


async def test_a_session_ends_in_time_with_a_last_turn(tmp_path: Path) -> None:
    async with gateway(tmp_path, options=replace(PROMPT, reset=IDLE), world=virtual()) as own:
        await own.clock.run_until(own.say("hello"))
        await look(own)
        assert len(own.stage.server.requests) == 1
        await own.clock.advance(3700)
        for _ in range(3):
            await look(own)
            await own.clock.advance(3700)
        asked = [request.last_text for request in own.stage.server.requests]
        assert [FLUSH in text for text in asked] == [False, True]
        # Nobody is told before they write.
        assert own.fake.texts == ["You said: hello"]
        assert await own.clock.run_until(own.say("good morning")) == [
            "This is a new conversation (the last message was more than 1 hours ago).",
            "You said: good morning",
        ]
        assert len(await own.session_ids()) == 2


async def test_a_message_during_the_last_turn_waits_for_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, options=replace(PROMPT, reset=IDLE), world=virtual()) as own:
        await own.clock.run_until(own.say("hello"))
        await own.clock.advance(3700)
        await own.service.reset_due()
        await own.deliver("too early")
        await own.clock.run_until(own.idle())
        assert own.fake.texts[-1] == "You said: too early"
        assert len(await own.session_ids()) == 2


async def test_the_last_turn_has_few_steps(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if any(FLUSH in str(message) for message in request.body["messages"]):
            return calls("search_files", pattern=f"*.{len(request.results)}")
        return echo(request)

    async with gateway(tmp_path, rule, options=replace(PROMPT, reset=IDLE), world=virtual()) as own:
        await own.clock.run_until(own.say("hello"))
        await own.clock.advance(3700)
        await look(own)
        assert 10 <= len(own.stage.server.requests) <= 13
        assert len(await own.clock.run_until(own.say("next"))) == 2


async def test_conversations_without_a_policy_are_left_alone(tmp_path: Path) -> None:
    async with gateway(tmp_path, lambda _: says("yes"), world=virtual()) as own:
        await own.clock.run_until(own.say("hello"))
        await own.clock.advance(7_400)
        await look(own)
        assert len(own.stage.server.requests) == 1
