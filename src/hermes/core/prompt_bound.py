"""How many tokens a prompt can have at most: what was told of its beginning, and bytes for the
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
# What vendors add around the parts, and to offer tools at all, is far below these.
PART_TOKENS = 24
FIXED_TOKENS = 1_024
# The dearest way in which a vendor counts one picture at full detail.
IMAGE_TOKENS = 40_000
_KEPT = 4


class PromptBound:
    """Bounds for the requests to one model. A request mostly begins with an earlier one, whose size
    the provider has told: then only the rest must be guessed, which keeps the bound close."""

    def __init__(self) -> None:
        self._known: deque[tuple[Prompt, int]] = deque(maxlen=_KEPT)

    def of(self, prompt: Prompt) -> int:
        for known, tokens in reversed(self._known):
            if _begins(prompt, known):
                return tokens + _all(prompt.messages[len(known.messages) :])
        fixed = FIXED_TOKENS + _bytes(prompt.system) + sum(tool_sizes(prompt.tools))
        return fixed + PART_TOKENS * len(prompt.tools) + _all(prompt.messages)

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """The prompt has that many tokens, or at most that many."""
        self._known.append((prompt, tokens))


def message_bound(message: Message) -> int:
    match message:
        case UserMessage():
            parts = message.parts
        case AssistantMessage():
            return PART_TOKENS + sum(_said(part) for part in message.parts)
        case ToolMessage():
            parts = tuple(part for result in message.results for part in result.parts)
            names = sum(len(each.call_id) + _bytes(each.name) for each in message.results)
            return PART_TOKENS * (1 + len(message.results)) + names + sum(map(_shown, parts))
        case _:
            assert_never(message)
    return PART_TOKENS + sum(map(_shown, parts))


def _begins(prompt: Prompt, known: Prompt) -> bool:
    """Messages are mostly the very same objects, which compare at once."""
    return (
        prompt.tools == known.tools
        and prompt.messages[: len(known.messages)] == known.messages
        and prompt.system == known.system
    )


def _all(messages: tuple[Message, ...]) -> int:
    return sum(map(message_bound, messages))


def _shown(part: Text | Image) -> int:
    return PART_TOKENS + (_bytes(part.text) if isinstance(part, Text) else IMAGE_TOKENS)


def _said(part: Text | Reasoning | ToolCall) -> int:
    match part:
        case Text():
            return PART_TOKENS + _bytes(part.text)
        case Reasoning():
            sealed = len(encode(part.sealed)) if part.sealed else 0
            return PART_TOKENS + _bytes(part.text) + sealed
        case ToolCall():
            return PART_TOKENS + len(part.id) + _bytes(part.name) + len(encode(part.arguments))
        case _:
            assert_never(part)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
