"""A short recap of a session."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import Value
from hermes.commands.visible import clean, one_line
from hermes.context.session_references import without_attachments
from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage

SAID_CHARACTERS = 300
ANSWER_CHARACTERS = 200
ANSWER_LINES = 3


class Exchange(Value):
    """One user message, its final answer and the number of tool calls."""

    said: str
    answer: str = ""
    calls: int = 0


class Tally(Value):
    """Message counts by kind."""

    messages: int
    said: int
    calls: int


def exchanges(messages: Sequence[Message], last: int) -> tuple[Exchange, ...]:
    """The last exchanges, oldest first, each cut to a few lines."""
    found: list[Exchange] = []
    for message in messages:
        match message:
            case UserMessage(origin="user"):
                said = without_attachments(message.text)
                found.append(Exchange(said=one_line(said, SAID_CHARACTERS)))
            case AssistantMessage() if found:
                now = found[-1]
                found[-1] = Exchange(
                    said=now.said,
                    answer=_shortened(message.text) or now.answer,
                    calls=now.calls + len(message.calls),
                )
            case _:
                pass
    return tuple(found[-last:]) if last else ()


def tally(messages: Sequence[Message]) -> Tally:
    said = sum(isinstance(m, UserMessage) and m.origin == "user" for m in messages)
    calls = sum(len(m.results) for m in messages if isinstance(m, ToolMessage))
    return Tally(messages=len(messages), said=said, calls=calls)


def _shortened(text: str) -> str:
    lines = [line.rstrip() for line in clean(text).strip().split("\n") if line.strip()]
    short = "\n".join(lines[:ANSWER_LINES])
    if len(short) > ANSWER_CHARACTERS:
        return short[: ANSWER_CHARACTERS - 1].rstrip() + "…"
    return short + ("\n…" if len(lines) > ANSWER_LINES else "")
