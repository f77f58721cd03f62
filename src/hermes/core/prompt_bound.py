"""An upper bound for the tokens of a prompt: the provider's count for a known prefix, bytes for the
rest."""

from __future__ import annotations

from collections import deque
from typing import assert_never

from hermes.codec.json import encode
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.core.prompt import Prompt, tool_sizes

# No tokenizer makes more tokens of a text than it has bytes, so bytes are a bound for any model.
# What vendors add for parts and tools is far below these constants.
PART_TOKENS = 24
FIXED_TOKENS = 1_024
# The highest count any vendor charges for one picture at full detail.
IMAGE_TOKENS = 40_000
_KEPT = 4


class PromptBound:
    """Bounds for the requests to one model. A request usually extends an earlier one whose size the
    provider reported. Then only the rest is estimated, which keeps the bound tight."""

    def __init__(self) -> None:
        self._known: deque[tuple[Prompt, int]] = deque(maxlen=_KEPT)

    def of(self, prompt: Prompt) -> int:
        for known, tokens in reversed(self._known):
            if _is_prefix(prompt, known):
                return tokens + _messages_bound(prompt.messages[len(known.messages) :])
        fixed = FIXED_TOKENS + _utf8_length(prompt.system) + sum(tool_sizes(prompt.tools))
        return fixed + PART_TOKENS * len(prompt.tools) + _messages_bound(prompt.messages)

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """Store that the prompt has at most this many tokens."""
        self._known.append((prompt, tokens))


def message_bound(message: Message) -> int:
    match message:
        case UserMessage():
            parts = message.parts
        case AssistantMessage():
            return PART_TOKENS + sum(_part_bound(part) for part in message.parts)
        case ToolMessage():
            parts = tuple(part for result in message.results for part in result.parts)
            names = sum(len(each.call_id) + _utf8_length(each.name) for each in message.results)
            return (
                PART_TOKENS * (1 + len(message.results)) + names + sum(map(_content_bound, parts))
            )
        case _:
            assert_never(message)
    return PART_TOKENS + sum(map(_content_bound, parts))


def _is_prefix(prompt: Prompt, known: Prompt) -> bool:
    """Messages are usually the same objects, so the comparison is fast."""
    return (
        prompt.tools == known.tools
        and prompt.messages[: len(known.messages)] == known.messages
        and prompt.system == known.system
    )


def _messages_bound(messages: tuple[Message, ...]) -> int:
    return sum(map(message_bound, messages))


def _content_bound(part: Text | Image) -> int:
    return PART_TOKENS + (_utf8_length(part.text) if isinstance(part, Text) else IMAGE_TOKENS)


def _part_bound(part: Text | Reasoning | ToolCall) -> int:
    match part:
        case Text():
            return PART_TOKENS + _utf8_length(part.text)
        case Reasoning():
            sealed = len(encode(part.sealed)) if part.sealed else 0
            return PART_TOKENS + _utf8_length(part.text) + sealed
        case ToolCall():
            return (
                PART_TOKENS + len(part.id) + _utf8_length(part.name) + len(encode(part.arguments))
            )
        case _:
            assert_never(part)


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
