"""What happens to messages that come while a turn runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.codec.values import replace
from hermes.core.events import MessageReceived, TurnEnded
from hermes.surfaces.gateway.options import BusyInput, GatewayOptions
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.surfaces.gateway.fake import PROMPT, Gateway, gateway, until, virtual


class Model:
    """Answers "wait" only when it is released; calls a tool first when it is asked to."""

    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def __call__(self, request: Request) -> Step:
        # A message after an interrupted one is in the same user message of the request.
        text = request.last_text.split("\n\n")[-1]
        if text.startswith("tool") and not request.results:
            return calls("search_files", pattern="*.py")
        if text.startswith("wait") or request.results:
            await self.release.wait()
        return says("Answer to " + " & ".join(text.splitlines()))


@asynccontextmanager
async def busy(
    folder: Path, mode: BusyInput = "interrupt", first: str = "wait for it", **options: Any
) -> AsyncIterator[tuple[Gateway, Model]]:
    """A gateway in the middle of a turn."""
    model = Model()
    given: GatewayOptions = replace(PROMPT, busy_mode=mode, **options)
    async with gateway(folder, model, options=given) as own:
        await own.deliver(first)
        await until(lambda: own.service.running())
        requests = 2 if first.startswith("tool") else 1
        await own.stage.server.received.reaches(requests)
        yield own, model


async def test_a_new_message_interrupts_the_running_turn(tmp_path: Path) -> None:
    async with busy(tmp_path) as (own, _):
        assert await own.say("instead this") == [
            "I stop what I am doing and read your message.",
            "Answer to instead this",
        ]
        ends = [r.event.reason for r in await own.records() if isinstance(r.event, TurnEnded)]
        assert ends == ["interrupted", "done"]
        assert await own.ledger.open_messages() == ()


async def test_queued_messages_wait_and_those_in_a_burst_are_one(tmp_path: Path) -> None:
    async with busy(tmp_path, "queue") as (own, model):
        await own.deliver("second")
        await own.deliver("third")
        await until(lambda: len(own.fake.texts) == 1)
        await asyncio.sleep(0.05)
        model.release.set()
        await own.idle()
        assert own.fake.texts == [
            "I read this when I am done.",
            "Answer to wait for it",
            "Answer to second & third",
        ]
        assert await own.ledger.open_messages() == ()


async def test_a_steering_message_joins_the_turn(tmp_path: Path) -> None:
    async with busy(tmp_path, "steer", "tool") as (own, model):
        await own.deliver("more facts")
        await until(lambda: own.fake.texts)
        await asyncio.sleep(0.1)
        model.release.set()
        await own.idle()
        assert own.fake.texts[0] == "I take this into account at the next step."
        records = [record.event for record in await own.records()]
        received = [each for each in records if isinstance(each, MessageReceived)]
        assert [each.key for each in received] == ["fake:k1", "fake:k2"]
        # The turn ended before its next step, so the message has a turn of its own.
        assert own.fake.texts[-1] == "Answer to more facts"
        assert await own.ledger.open_messages() == ()


async def test_the_mode_can_be_chosen_for_one_message(tmp_path: Path) -> None:
    async with busy(tmp_path, "interrupt") as (own, model):
        await own.deliver("/queue and then this")
        await until(lambda: own.fake.texts)
        model.release.set()
        await own.idle()
        assert own.fake.texts == [
            "I read this when I am done.",
            "Answer to wait for it",
            "Answer to and then this",
        ]


async def test_only_one_acknowledgement_comes_in_half_a_minute(tmp_path: Path) -> None:
    async with busy(tmp_path, "queue", queue_merge_seconds=0.0) as (own, model):
        for n in range(3):
            await own.deliver(f"number {n}")
        await asyncio.sleep(0.05)
        model.release.set()
        await own.idle()
        assert len(own.fake.texts) == 1 + 4
    async with busy(tmp_path / "quiet", "queue", busy_ack=False) as (own, model):
        await own.deliver("number")
        await asyncio.sleep(0.05)
        model.release.set()
        await own.idle()
        assert own.fake.texts == ["Answer to wait for it", "Answer to number"]


async def test_a_full_inbox_drops_the_oldest_message_and_says_so(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"max_inbox": 2, "queue_merge_seconds": 0.0, "busy_ack": False}
    async with busy(tmp_path, "queue", **limits) as (own, model):
        for n in range(3):
            await own.deliver(f"number {n}")
        await until(lambda: own.fake.texts)
        model.release.set()
        await own.idle()
        assert own.fake.texts == [
            "Too many messages wait, so I dropped “number 0”.",
            "Answer to wait for it",
            "Answer to number 1",
            "Answer to number 2",
        ]
        assert await own.ledger.open_messages() == ()


async def test_stop_ends_the_turn(tmp_path: Path) -> None:
    async with busy(tmp_path) as (own, _):
        assert await own.say("/stop") == ["Stopping the running turn."]
        assert await own.ledger.open_messages() == ()
        assert await own.say("again") == ["Answer to again"]


async def test_parts_of_a_long_message_are_one_message(tmp_path: Path) -> None:
    options = replace(PROMPT, burst_seconds=0.6)
    async with gateway(tmp_path, Model(), options=options, world=virtual()) as own:
        await own.deliver("one")
        await own.clock.advance(0.3)
        await own.deliver("two")
        await own.clock.run_until(own.idle())
        assert own.fake.texts == ["Answer to one & two"]
        await own.clock.run_until(own.say("three"))
        assert own.fake.texts[1:] == ["Answer to three"]


async def test_merged_messages_that_come_again_are_known(tmp_path: Path) -> None:
    options = replace(PROMPT, burst_seconds=0.2)
    async with gateway(tmp_path, Model(), options=options) as own:
        first = await own.deliver("one")
        second = await own.deliver("two")
        await own.idle()
        await own.service.receive(second)
        await own.service.receive(first)
        await own.idle()
        assert own.fake.texts == ["Answer to one & two"]


async def test_conversations_beyond_the_limit_wait_their_turn(tmp_path: Path) -> None:
    async with busy(tmp_path, max_concurrent_sessions=1) as (own, model):
        await own.deliver("me too", chat="c2")
        await until(lambda: own.fake.texts)
        assert own.fake.texts == ["Other conversations are busy; yours is next in line."]
        model.release.set()
        await own.idle()
        assert own.fake.texts[1:] == ["Answer to wait for it", "Answer to me too"]
