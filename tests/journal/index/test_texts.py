"""What of an event can be found."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.core.events import MessageReceived, ReplyAdded, ToolFinished, TurnStarted
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    user_says,
)
from hermes.journal.index.source import LONGEST_TEXT, EventRow, text_of


def row(event: object, kind: str) -> EventRow:
    return EventRow(1, "s1", 1, kind, 0.0, encode(event))


def test_the_words_of_a_person_are_found_and_pictures_are_not() -> None:
    event = MessageReceived(
        message=user_says("Look", Image(file="cat.png", media_type="image/png"))
    )
    assert text_of(row(event, "message_received")) == "Look"


def test_a_reply_is_found_by_its_words_and_calls_and_not_by_its_thoughts() -> None:
    arguments = {"path": "a/b.py", "lines": 20, "deep": [{"x": "y"}, True]}
    call = ToolCall(id="c1", name="read_file", arguments=arguments)
    parts = (Reasoning(text="secret thought"), Text(text="I will look."), call)
    message = AssistantMessage(parts=parts)
    event = ReplyAdded(message=message, usage=Usage(), model="m", provider="p")
    assert text_of(row(event, "reply_added")) == "I will look.\nread_file a/b.py 20 y"


def test_what_a_tool_answered_is_found() -> None:
    result = ToolResult(
        call_id="c", name="t", parts=(Text(text="12 files"),), details={"hidden": "yes"}
    )
    assert text_of(row(ToolFinished(result=result), "tool_finished")) == "12 files"


def test_other_events_and_damaged_ones_have_no_words() -> None:
    assert text_of(row(TurnStarted(takes=(1,)), "turn_started")) == ""
    assert text_of(EventRow(1, "s1", 1, "message_received", 0.0, '{"message": {"par')) == ""
    assert text_of(EventRow(1, "s1", 1, "reply_added", 0.0, "[]")) == ""
    assert text_of(EventRow(1, "s1", 1, "reply_added", 0.0, b"\xff\xfe")) == ""


def test_of_a_very_long_text_the_beginning_is_found() -> None:
    event = MessageReceived(message=user_says("a " * LONGEST_TEXT))
    assert len(text_of(row(event, "message_received"))) == LONGEST_TEXT
