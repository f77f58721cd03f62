"""Reads the messages of a prompt as exchanges: what was said, what was tried, what was answered."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import Value
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

# Nothing refers further back than this.
MAX_MESSAGES_OF_PERSONS = 40


class Round(Value):
    """The calls of one reply with their results."""

    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]


class Exchange(Value):
    """Messages of a person that came together, and all that followed until the next one."""

    said: tuple[UserMessage, ...]
    rounds: tuple[Round, ...] = ()
    answer: str = ""

    @property
    def asked(self) -> str:
        """What a person asked, without news from processes."""
        return "\n".join(own_words(each) for each in self.said if not is_notice(each)).strip()


def own_words(message: UserMessage) -> str:
    """Without what memory and hooks put beside it for models, each as a part of its own."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "".join(text for n, text in enumerate(texts) if not n or not text.startswith("\n\n"))


def is_notice(message: UserMessage) -> bool:
    """News of a background process, not words of a person."""
    return message.origin.startswith("process")


def is_aside(message: UserMessage) -> bool:
    """A word of Hermes itself to whoever answers; nobody asked anything."""
    return message.origin == "hermes"


def exchanges(messages: Sequence[Message]) -> tuple[Exchange, ...]:
    """The newest ones, oldest first: a long conversation costs no more than a short one. What
    stands before the first user message belongs to none."""
    found: list[Exchange] = []
    said: list[UserMessage] = []
    rounds: list[Round] = []
    calls: tuple[ToolCall, ...] = ()
    answer = ""
    answered = False
    for message in messages[_start(messages) :]:
        match message:
            case UserMessage() if is_aside(message):
                continue
            case UserMessage():
                if said and answered:
                    found.append(Exchange(said=tuple(said), rounds=tuple(rounds), answer=answer))
                    said, rounds, calls, answer = [], [], (), ""
                said.append(message)
                answered = False
            case AssistantMessage():
                answer, calls, answered = message.text or answer, message.calls, True
            case ToolMessage(results=results):
                rounds.append(Round(calls=calls, results=results))
                calls = ()
    if said:
        found.append(Exchange(said=tuple(said), rounds=tuple(rounds), answer=answer))
    return tuple(found)


def _start(messages: Sequence[Message]) -> int:
    """Where the oldest message of a person stands that still counts."""
    left = MAX_MESSAGES_OF_PERSONS
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and not is_aside(message):
            left -= 1
            if not left:
                return index
    return 0
