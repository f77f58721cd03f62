"""Groups the messages of a prompt into exchanges: request, tool rounds, answer."""

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

# Nothing refers further back.
MAX_USER_MESSAGES = 40


class ToolRound(Value):
    """The calls of one reply with their results."""

    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]


class DialogueTurn(Value):
    """Consecutive user messages and everything that follows until the next one."""

    user_messages: tuple[UserMessage, ...]
    rounds: tuple[ToolRound, ...] = ()
    answer: str = ""

    @property
    def request(self) -> str:
        """The request, without reports from processes."""
        return "\n".join(
            own_words(each) for each in self.user_messages if not is_notice(each)
        ).strip()


def own_words(message: UserMessage) -> str:
    """Without the parts that memory and hooks add for models."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "".join(text for n, text in enumerate(texts) if not n or not text.startswith("\n\n"))


def is_notice(message: UserMessage) -> bool:
    """A report of a background process, not a user message."""
    return message.origin.startswith("process")


def is_aside(message: UserMessage) -> bool:
    """A message from Hermes itself, not a request."""
    return message.origin == "hermes"


def dialogue_turns(messages: Sequence[Message]) -> tuple[DialogueTurn, ...]:
    """The newest exchanges, oldest first, so that a long conversation costs no more than a short
    one. Messages before the first user message are dropped."""
    found: list[DialogueTurn] = []
    said: list[UserMessage] = []
    rounds: list[ToolRound] = []
    calls: tuple[ToolCall, ...] = ()
    answer = ""
    answered = False
    for message in messages[_start(messages) :]:
        match message:
            case UserMessage() if is_aside(message):
                continue
            case UserMessage():
                if said and answered:
                    found.append(
                        DialogueTurn(user_messages=tuple(said), rounds=tuple(rounds), answer=answer)
                    )
                    said, rounds, calls, answer = [], [], (), ""
                said.append(message)
                answered = False
            case AssistantMessage():
                answer, calls, answered = message.text or answer, message.calls, True
            case ToolMessage(results=results):
                rounds.append(ToolRound(calls=calls, results=results))
                calls = ()
    if said:
        found.append(DialogueTurn(user_messages=tuple(said), rounds=tuple(rounds), answer=answer))
    return tuple(found)


def _start(messages: Sequence[Message]) -> int:
    """The position of the oldest user message that still counts."""
    left = MAX_USER_MESSAGES
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and not is_aside(message):
            left -= 1
            if not left:
                return index
    return 0
