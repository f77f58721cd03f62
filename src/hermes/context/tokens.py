"""Estimates the tokens of requests: once per message, corrected by the provider's counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hermes.codec.json import encode
from hermes.core.events import Compacted
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
from hermes.core.prompt import Prompt, ToolSpec, tool_sizes
from hermes.core.transcript import Transcript

CHARS_PER_TOKEN = 4
# Non-ASCII letters are mostly tokens of their own or in pairs.
_WIDE_BYTES_PER_TOKEN = 2.5
IMAGE_TOKENS = 1_500
_PER_MESSAGE = 6
_LEAST_SCALE, _MOST_SCALE = 0.7, 2.5


def text_tokens(text: str) -> int:
    if text.isascii():
        return -(-len(text) // CHARS_PER_TOKEN)
    wide = len(text.encode("utf-8", "surrogatepass")) - len(text)
    return int(len(text) / CHARS_PER_TOKEN + wide / _WIDE_BYTES_PER_TOKEN) + 1


def message_tokens(message: Message) -> int:
    match message:
        case UserMessage():
            return _PER_MESSAGE + sum(map(_part_tokens, message.parts))
        case AssistantMessage():
            return _PER_MESSAGE + sum(map(_assistant_part_tokens, message.parts))
        case ToolMessage():
            parts = (part for result in message.results for part in result.parts)
            return _PER_MESSAGE * (1 + len(message.results)) + sum(map(_part_tokens, parts))
        case _:
            assert_never(message)


def messages_tokens(messages: Sequence[Message]) -> int:
    return sum(map(message_tokens, messages))


class TokenGauge:
    """For one session. Each message is counted once; sums are cheap."""

    def __init__(self) -> None:
        self._known: list[Message] = []
        self._sums = [0]
        self._head: tuple[Compacted | None, int] = (None, 0)
        self._fixed: tuple[str, tuple[ToolSpec, ...], int] = ("", (), 0)

    def fixed_tokens(self, prompt: Prompt) -> int:
        """Returns the tokens of the system text and the tools."""
        system, tools, tokens = self._fixed
        if prompt.system is not system or prompt.tools is not tools:
            tokens = text_tokens(prompt.system)
            tokens += sum([-(-size // CHARS_PER_TOKEN) for size in tool_sizes(prompt.tools)])
            self._fixed = prompt.system, prompt.tools, tokens
        return tokens

    def range_tokens(self, messages: list[Message], start: int, end: int) -> int:
        """Returns the tokens of a range of messages."""
        self._follow(messages)
        return self._sums[end] - self._sums[start]

    def request_tokens(
        self, transcript: Transcript, prompt: Prompt, upto: int | None = None
    ) -> int:
        """Returns the tokens of the request, up to some message."""
        newest = transcript.compactions[-1] if transcript.compactions else None
        if self._head[0] is not newest:
            self._head = newest, messages_tokens(newest.head) if newest else 0
        start = newest.upto if newest else 0
        end = len(transcript.messages) if upto is None else upto
        rest = self.range_tokens(transcript.messages, start, end)
        return self.fixed_tokens(prompt) + self._head[1] + rest

    def scale(self, transcript: Transcript, prompt: Prompt) -> float:
        """Returns the provider's tokens per estimated token, as measured."""
        if not transcript.measured:
            return transcript.compactions[-1].scale if transcript.compactions else 1.0
        ours = self.request_tokens(transcript, prompt, transcript.measured_upto)
        return round(max(_LEAST_SCALE, min(_MOST_SCALE, transcript.measured / max(1, ours))), 3)

    def provider_tokens(self, transcript: Transcript, prompt: Prompt) -> int:
        """Estimates the next request in provider tokens."""
        scale = self.scale(transcript, prompt)
        return int(self.request_tokens(transcript, prompt) * scale)

    def _follow(self, messages: list[Message]) -> None:
        known, sums = self._known, self._sums
        while known and (len(known) > len(messages) or known[-1] is not messages[len(known) - 1]):
            known.pop()
            sums.pop()
        for message in messages[len(known) :]:
            known.append(message)
            sums.append(sums[-1] + message_tokens(message))


def _part_tokens(part: Text | Image) -> int:
    return text_tokens(part.text) if isinstance(part, Text) else IMAGE_TOKENS


def _assistant_part_tokens(part: Text | Reasoning | ToolCall) -> int:
    match part:
        case Text():
            return text_tokens(part.text)
        case Reasoning():
            sealed = len(encode(part.sealed)) if part.sealed else 0
            return text_tokens(part.text) + sealed // CHARS_PER_TOKEN
        case ToolCall():
            return _PER_MESSAGE + -(-len(encode(part.arguments)) // CHARS_PER_TOKEN)
        case _:
            assert_never(part)
