"""A short recap of a session."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import Value
from hermes.commands.visible import one_line, sanitize
from hermes.context.session_references import without_attachments
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage

SAID_CHARACTERS = 300
ANSWER_CHARACTERS = 200
ANSWER_LINES = 3


class RecapExchange(Value):
    """One user message, its final answer and the number of tool calls."""

    said: str
    answer: str = ""
    calls: int = 0


class MessageCounts(Value):
    """Message counts by kind."""

    messages: int
    said: int
    calls: int


def exchanges(messages: Sequence[Message], last: int) -> tuple[RecapExchange, ...]:
    """The last exchanges, oldest first, each cut to a few lines."""
    found: list[RecapExchange] = []
    for message in messages:
        match message:
            case UserMessage(origin="user"):
                said = without_attachments(message.text)
                found.append(RecapExchange(said=one_line(said, SAID_CHARACTERS)))
            case AssistantMessage() if found:
                now = found[-1]
                found[-1] = RecapExchange(
                    said=now.said,
                    answer=_shorten(message.text) or now.answer,
                    calls=now.calls + len(message.calls),
                )
            case _:
                pass
    return tuple(found[-last:]) if last else ()


def count_messages(messages: Sequence[Message]) -> MessageCounts:
    said = sum(isinstance(m, UserMessage) and m.origin == "user" for m in messages)
    calls = sum(len(m.results) for m in messages if isinstance(m, ToolMessage))
    return MessageCounts(messages=len(messages), said=said, calls=calls)


def _shorten(text: str) -> str:
    lines = [line.rstrip() for line in sanitize(text).strip().split("\n") if line.strip()]
    short = "\n".join(lines[:ANSWER_LINES])
    if len(short) > ANSWER_CHARACTERS:
        return short[: ANSWER_CHARACTERS - 1].rstrip() + "…"
    return short + ("\n…" if len(lines) > ANSWER_LINES else "")
