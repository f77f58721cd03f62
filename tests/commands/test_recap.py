"""What was said so far, short enough to remember it by."""

from __future__ import annotations

from hermes.commands.history import MessageCounts, RecapExchange, count_messages, exchanges
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    user_says,
)


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
        RecapExchange(said="first", answer="I see", calls=2),
        RecapExchange(said="second line", answer="1\n2\n3\n…"),
    )


def test_only_the_last_exchanges_are_told() -> None:
    assert [each.said for each in exchanges(TALK, 1)] == ["second line"]
    assert exchanges(TALK, 0) == ()


def test_long_words_are_cut() -> None:
    (told,) = exchanges([user_says("x" * 1000), says("y" * 1000)], 1)
    assert (len(told.said), len(told.answer)) == (300, 200)


def test_messages_are_counted_by_kind() -> None:
    assert count_messages(TALK) == MessageCounts(messages=8, said=2, calls=2)
