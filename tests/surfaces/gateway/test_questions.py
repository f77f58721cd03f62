"""Approvals and questions are asked in the chat and answered by people who may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.codec.values import replace
from hermes.core.events import ApprovalAnswered, QuestionAnswered, ToolFinished
from hermes.surfaces.gateway.platform import Post
from hermes.surfaces.gateway.questions import DENY
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, calls_many, says
from tests.durability.stage import Stage
from tests.surfaces.gateway.fake import (
    ABILITIES,
    PROMPT,
    SETTINGS,
    Gateway,
    gateway,
    killed_gateway,
    running,
    until,
    virtual,
)

RISKY = "sudo ls /root"
TEXT_ONLY = replace(ABILITIES, choices="none")


def risky(request: Request) -> Step:
    if "ask" in request.last_text and not request.results:
        return calls("clarify", question="Which colour?", choices=["red", "blue"])
    if "twice" in request.last_text and not request.results:
        return calls_many(
            ("terminal", {"command": RISKY}), ("terminal", {"command": "sudo ls /srv"})
        )
    if not request.results:
        return calls("terminal", command=RISKY)
    return says(f"Result: {request.last_text[:60]}")


@asynccontextmanager
async def asking(folder: Path, text: str = "do it", **options: Any) -> AsyncIterator[Gateway]:
    """A gateway whose model waits for an answer."""
    async with gateway(folder, risky, asks=True, **options) as own:
        await own.deliver(text)
        await until(lambda: own.fake.messages)
        yield own


def prompts(own: Gateway) -> list[tuple[str, Post]]:
    return [(id, post) for id, (_, post) in own.fake.messages.items() if post.choices]


async def press(own: Gateway, choice: str, **facts: Any) -> str:
    """What the person who pressed is told."""
    (message_id, _), *_ = prompts(own) or [("m1", Post())]
    await own.deliver("", choice=choice, message_id=message_id, **facts)
    await until(lambda: own.fake.seen("answer"))
    return own.fake.seen("answer")[-1].text


async def answers(own: Gateway) -> list[tuple[str, str, str]]:
    found = (record.event for record in await own.records())
    return [(e.choice, e.by, e.reason) for e in found if isinstance(e, ApprovalAnswered)]


async def test_an_approval_has_buttons_and_shows_its_outcome(tmp_path: Path) -> None:
    async with asking(tmp_path) as own:
        ((_, post),) = prompts(own)
        assert RISKY in post.text
        deny = next(choice for choice in post.choices if choice.label == "Deny")
        assert await press(own, deny.id) == "Deny"
        await own.idle()
        assert "Denied by u1." in own.fake.texts[0]
        assert own.fake.texts[1].startswith("Result:")
        assert await answers(own) == [("deny", "u1", "")]
        assert await own.ledger.open_messages() == ()


async def test_a_late_press_is_told_that_the_question_expired(tmp_path: Path) -> None:
    async with asking(tmp_path) as own:
        ((_, post),) = prompts(own)
        await press(own, post.choices[-1].id)
        await own.idle()
        own.fake.calls.clear()
        assert await press(own, post.choices[-1].id) == "This question has expired."


async def test_strangers_and_people_without_the_right_cannot_answer(tmp_path: Path) -> None:
    async with asking(tmp_path) as own:
        ((_, post),) = prompts(own)
        choice = post.choices[0].id
        assert await press(own, choice, sender="stranger") == "You may not answer this."
        own.fake.calls.clear()
        own.access.refused_commands.add("approve")
        assert await press(own, choice, sender="u2") == "You may not answer this."
        assert await answers(own) == []


async def test_only_the_requester_may_answer_if_the_settings_say_so(tmp_path: Path) -> None:
    async with asking(tmp_path, options=replace(PROMPT, requester_only=True)) as own:
        ((_, post),) = prompts(own)
        told = await press(own, post.choices[0].id, sender="u2")
        assert told == "Only the person who asked for it may answer."


async def test_without_buttons_commands_answer(tmp_path: Path) -> None:
    async with asking(tmp_path, abilities=TEXT_ONLY) as own:
        assert "/approve" in own.fake.texts[0] and "/deny" in own.fake.texts[0]
        await own.deliver("/deny too risky for now")
        await own.idle()
        assert await answers(own) == [("deny", "u1", "too risky for now")]
        results = [r.event.result for r in await own.records() if isinstance(r.event, ToolFinished)]
        assert "too risky for now" in results[0].text
        assert await own.say("/approve") == ["Nothing waits for approval."]


async def test_several_questions_are_answered_one_by_one(tmp_path: Path) -> None:
    async with asking(tmp_path, "twice", abilities=TEXT_ONLY) as own:
        await own.deliver("/deny")
        await until(lambda: len(own.fake.seen("post")) >= 2)
        await own.deliver("/deny all")
        await own.idle()
        assert [choice for choice, _, _ in await answers(own)] == ["deny", "deny"]


async def test_an_approval_without_an_answer_is_denied_in_time(tmp_path: Path) -> None:
    async with gateway(tmp_path, risky, asks=True, world=virtual()) as own:
        await own.deliver("do it")
        await until(lambda: own.fake.messages)
        await own.clock.advance(301)
        await own.clock.run_until(own.idle())
        assert "No answer in time: denied." in own.fake.texts[0]
        assert (await answers(own))[0][:2] == ("deny", "time")


async def test_a_question_is_answered_by_a_button_or_the_next_message(tmp_path: Path) -> None:
    async with asking(tmp_path, "ask me") as own:
        ((_, post),) = prompts(own)
        assert [choice.label for choice in post.choices] == ["red", "blue"]
        assert await press(own, post.choices[1].id) == "blue"
        await own.idle()
        assert own.fake.texts[0] == "Which colour?\n\nAnswer: blue"
    async with asking(tmp_path / "text", "ask me", abilities=TEXT_ONLY) as own:
        assert own.fake.texts == ["Which colour?\n1. red\n2. blue"]
        await own.deliver("1")
        await own.idle()
        found = [r.event for r in await own.records() if isinstance(r.event, QuestionAnswered)]
        assert [(each.text, each.by) for each in found] == [("red", "u1")]
        assert await own.ledger.open_messages() == ()


async def test_a_question_survives_a_restart(tmp_path: Path) -> None:
    async with ScriptedServer(risky) as server:
        stage = Stage(tmp_path / "stage", server, settings=SETTINGS)
        fake = await killed_gateway(stage, "do it", shows=1)
        async with running(stage, asks=True, fake=fake) as own:
            await until(lambda: own.fake.seen("edit"))
            ((_, new),) = prompts(own)
            assert RISKY in new.text
            old = f"ask_0123456789ab:{DENY}"
            assert await press(own, old, key="p1") == "This question has expired."
            own.fake.calls.clear()
            assert await press(own, new.choices[-1].id, key="p2") == "Deny"
            await own.idle()
            assert len(own.fake.texts) == 2
            assert await own.ledger.open_messages() == ()


async def test_typing_pauses_while_a_question_waits(tmp_path: Path) -> None:
    abilities = replace(ABILITIES, typing_seconds=4.0)
    async with gateway(tmp_path, risky, asks=True, world=virtual(), abilities=abilities) as own:
        await own.deliver("do it")
        await until(lambda: own.fake.messages)
        await asyncio.sleep(0.05)
        before = len(own.fake.seen("typing"))
        await own.clock.advance(60)
        assert len(own.fake.seen("typing")) == before
