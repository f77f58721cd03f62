"""Measures prompts and replies: an upper bound of their tokens, and the number of characters."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, assert_never

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


class _Known(NamedTuple):
    """A prompt that was sent, the most tokens that it has, and its characters."""

    prompt: Prompt
    tokens: int
    characters: int


class PromptBound:
    """Bounds for the requests to one model. A request usually extends an earlier one whose size the
    provider reported. Then only the rest is estimated, which keeps the bound tight."""

    def __init__(self) -> None:
        self._known: deque[_Known] = deque(maxlen=_KEPT)

    def of(self, prompt: Prompt) -> int:
        if known := self._beginning_of(prompt):
            rest = prompt.messages[len(known.prompt.messages) :]
            return known.tokens + sum(map(message_bound, rest))
        fixed = FIXED_TOKENS + _utf8_length(prompt.system) + sum(tool_sizes(prompt.tools))
        return fixed + PART_TOKENS * len(prompt.tools) + sum(map(message_bound, prompt.messages))

    def characters(self, prompt: Prompt) -> int:
        """Return the characters of text that the prompt certainly has."""
        if known := self._beginning_of(prompt):
            rest = prompt.messages[len(known.prompt.messages) :]
            return known.characters + sum(map(count_characters, rest))
        fixed = len(prompt.system) + sum(tool_sizes(prompt.tools))
        return fixed + sum(map(count_characters, prompt.messages))

    def learn(self, prompt: Prompt, tokens: int) -> None:
        """Store that the prompt has at most this many tokens."""
        self._known.append(_Known(prompt, tokens, self.characters(prompt)))

    def _beginning_of(self, prompt: Prompt) -> _Known | None:
        for known in reversed(self._known):
            # Messages are usually the same objects, so the comparison is fast.
            start = prompt.messages[: len(known.prompt.messages)]
            same = prompt.tools == known.prompt.tools and start == known.prompt.messages
            if same and prompt.system == known.prompt.system:
                return known
        return None


def count_characters(message: Message) -> int:
    """Count the characters of a message that is sent to a model. Reasoning is not sent to every
    model, and pictures are not text."""
    match message:
        case UserMessage():
            return sum(map(_text_length, message.parts))
        case AssistantMessage():
            calls = sum(len(call.name) + len(encode(call.arguments)) for call in message.calls)
            return calls + sum(map(_text_length, message.parts))
        case ToolMessage(results=results):
            return sum(_text_length(part) for each in results for part in each.parts)
        case _:
            assert_never(message)


def _text_length(part: object) -> int:
    """Return the length of a text. Pairs of spaces count half: tokenizers join them."""
    return len(part.text) - part.text.count("  ") if isinstance(part, Text) else 0


def message_bound(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage():
            return PART_TOKENS + sum(map(_part_bound, message.parts))
        case ToolMessage(results=results):
            names = sum(len(each.call_id) + _utf8_length(each.name) for each in results)
            parts = sum(_part_bound(part) for each in results for part in each.parts)
            return PART_TOKENS * (1 + len(results)) + names + parts
        case _:
            assert_never(message)


def _part_bound(part: Text | Image | Reasoning | ToolCall) -> int:
    match part:
        case Text():
            return PART_TOKENS + _utf8_length(part.text)
        case Image():
            return PART_TOKENS + IMAGE_TOKENS
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
