"""The recap of a session, and commands about what was said."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.commands.history import MessageCounts, RecapExchange, count_messages, exchanges
from hermes.commands.registry import CopyText, Outcome, Quit, ShowText, SwitchSession
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    user_says,
)
from tests.commands.conftest import Talk


def says(text: str, *calls: str) -> AssistantMessage:
    made = (ToolCall(id=name, name=name) for name in calls)
    return AssistantMessage(parts=(Text(text=text), *made))


def result(name: str) -> ToolResult:
    return ToolResult(call_id=name, name=name, parts=())


TALK: list[Message] = [
    user_says("first"),
    says("", "a", "b"),
    ToolMessage(results=(result("a"), result("b"))),
    says("one"),
    user_says("the process ended", origin="process:1"),
    says("I see"),
    user_says("second\nline"),
    says("1\n\n2\n3\n4"),
]


def test_an_exchange_has_the_last_words_and_the_number_of_calls() -> None:
    assert exchanges(TALK, 10) == (
        RecapExchange(prompt="first", answer="I see", calls=2),
        RecapExchange(prompt="second line", answer="1\n2\n3\n…"),
    )


def test_only_the_last_exchanges_are_told() -> None:
    assert [each.prompt for each in exchanges(TALK, 1)] == ["second line"]
    assert exchanges(TALK, 0) == ()


def test_long_words_are_cut() -> None:
    (told,) = exchanges([user_says("x" * 1000), says("y" * 1000)], 1)
    assert (len(told.prompt), len(told.answer)) == (300, 200)


def test_messages_are_counted_by_kind() -> None:
    assert count_messages(TALK) == MessageCounts(messages=8, user=2, calls=2)


async def run(talk: Talk, line: str) -> Outcome:
    return await talk.registry.run(line, talk)


async def shown(talk: Talk, line: str) -> str:
    outcome = await run(talk, line)
    assert isinstance(outcome, ShowText), outcome
    return outcome.text


async def test_a_branch_goes_on_alone(talk: Talk) -> None:
    assert "before you branch it" in await shown(talk, "/branch")
    await talk.say("what is 1 + 1")
    outcome = await run(talk, "/fork other way")
    assert isinstance(outcome, SwitchSession)
    assert outcome.session_id not in ("", talk.session.id)
    forked = await talk.app.archive.info(outcome.session_id)
    assert forked.title == "other way"
    assert len(await talk.app.archive.conversation(outcome.session_id)) == 2


async def test_history_tells_what_was_said(talk: Talk) -> None:
    assert await shown(talk, "/history") == "There are no messages yet."
    await talk.say("what is 1 + 1")
    await talk.say("what is 2 + 2")
    assert (
        await shown(talk, "/history") == "❯ what is 1 + 1\n1 + 1 = 2\n\n❯ what is 2 + 2\n2 + 2 = 4"
    )
    assert await shown(talk, "/history 1") == "❯ what is 2 + 2\n2 + 2 = 4"


async def test_a_conversation_is_saved_once_under_a_name(talk: Talk, tmp_path: Path) -> None:
    assert "before you save it" in await shown(talk, "/save")
    await talk.say("what is 1 + 1")
    assert (
        await shown(talk, "/save talk.json") == f"The conversation is in {tmp_path / 'talk.json'}."
    )
    saved = json.loads((tmp_path / "talk.json").read_text())
    assert saved["session_id"] == talk.session.id
    assert [len(saved["messages"]), "1 + 1 = 2" in json.dumps(saved["messages"])] == [2, True]
    assert "cannot be written" in await shown(talk, "/save talk.json")
    assert "hermes_conversation_" in await shown(talk, "/save")


async def test_status_tells_how_things_stand(talk: Talk) -> None:
    await talk.say("what is 1 + 1")
    lines = (await shown(talk, "/status")).split("\n")
    assert lines[0] == f"Session   {talk.session.id}"
    assert lines[2:4] == ["State     idle", "Messages  2 (1 user, 0 tool calls)"]
    assert lines[-2:] == ["❯ what is 1 + 1", "1 + 1 = 2"]


async def test_an_answer_is_copied(talk: Talk) -> None:
    await talk.say("what is 1 + 1")
    await talk.say("what is 2 + 2")
    assert await run(talk, "/copy") == CopyText(text="2 + 2 = 4")
    assert await run(talk, "/copy 2") == CopyText(text="1 + 1 = 2")
    assert "no such answer" in await shown(talk, "/copy 3")


async def test_leaving_can_delete_the_session(talk: Talk) -> None:
    assert await run(talk, "/quit") == Quit()
    assert await run(talk, "/quit --delete") == Quit(delete=True)
    assert "Use /quit" in await shown(talk, "/quit now")


async def test_clear_asks_for_an_empty_screen_and_a_new_session(talk: Talk) -> None:
    assert await run(talk, "/clear") == SwitchSession(reason="new", clear=True)
