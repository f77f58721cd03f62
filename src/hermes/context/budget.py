"""Estimates request sizes and divides the context window."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, assert_never

from hermes.codec.json import encode
from hermes.codec.tokens import IMAGE_TOKENS, estimate_tokens, tokens_of_size
from hermes.codec.values import Value, replace
from hermes.config.session_settings import CompressionSettings
from hermes.context.long_arguments import shorten_arguments
from hermes.core.events import Compacted
from hermes.core.messages import Image, Message, Reasoning, Text, ToolCall, ToolMessage
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply, ToolSpec, tool_sizes
from hermes.core.transcript import Transcript
from hermes.core.world import Clock

_PER_MESSAGE = 6
_LEAST_SCALE, _MOST_SCALE = 0.7, 2.5


def message_tokens(message: Message) -> int:
    if isinstance(message, ToolMessage):
        parts = (part for result in message.results for part in result.parts)
        return _PER_MESSAGE * (1 + len(message.results)) + sum(map(_part_tokens, parts))
    return _PER_MESSAGE + sum(map(_part_tokens, message.parts))


def messages_tokens(messages: Sequence[Message]) -> int:
    return sum(map(message_tokens, messages))


class TokenGauge:
    """Counts the tokens of one session. Each message is counted once; sums are cheap."""

    def __init__(self) -> None:
        self._known: list[Message] = []
        self._sums = [0]
        self._head: tuple[Compacted | None, int] = (None, 0)
        self._fixed: tuple[str, tuple[ToolSpec, ...], int] = ("", (), 0)

    def fixed_tokens(self, prompt: Prompt) -> int:
        """Return the tokens of the system text and the tools."""
        system, tools, tokens = self._fixed
        if prompt.system is not system or prompt.tools is not tools:
            tokens = estimate_tokens(prompt.system)
            tokens += sum(map(tokens_of_size, tool_sizes(prompt.tools)))
            self._fixed = prompt.system, prompt.tools, tokens
        return tokens

    def range_tokens(self, messages: list[Message], start: int, end: int) -> int:
        """Return the tokens of a range of messages."""
        known, sums = self._known, self._sums
        while known and (len(known) > len(messages) or known[-1] is not messages[len(known) - 1]):
            known.pop()
            sums.pop()
        for message in messages[len(known) :]:
            known.append(message)
            sums.append(sums[-1] + message_tokens(message))
        return sums[end] - sums[start]

    def request_tokens(
        self, transcript: Transcript, prompt: Prompt, upto: int | None = None
    ) -> int:
        """Return the tokens of the request, up to some message."""
        newest = transcript.compactions[-1] if transcript.compactions else None
        if self._head[0] is not newest:
            self._head = newest, messages_tokens(newest.head) if newest else 0
        start = newest.upto if newest else 0
        end = len(transcript.messages) if upto is None else upto
        rest = self.range_tokens(transcript.messages, start, end)
        return self.fixed_tokens(prompt) + self._head[1] + rest

    def scale(self, transcript: Transcript, prompt: Prompt) -> float:
        """Return the provider's tokens per estimated token, as measured."""
        if not transcript.measured:
            return transcript.compactions[-1].scale if transcript.compactions else 1.0
        ours = self.request_tokens(transcript, prompt, transcript.measured_upto)
        return round(max(_LEAST_SCALE, min(_MOST_SCALE, transcript.measured / max(1, ours))), 3)

    def budget(
        self, transcript: Transcript, prompt: Prompt, window: int, rules: CompressionSettings
    ) -> TokenBudget:
        """Return the budgets. The window is divided by the ratio of the provider's token count to
        our estimate."""
        scale = self.scale(transcript, prompt)
        most = int(prompt.max_tokens / scale) if prompt.max_tokens else None
        fixed = self.fixed_tokens(prompt)
        return budget_for(max(1, int(window / scale)), fixed, rules, max_tokens=most)


def _part_tokens(part: Text | Image | Reasoning | ToolCall) -> int:
    match part:
        case Text():
            return estimate_tokens(part.text)
        case Image():
            return IMAGE_TOKENS
        case Reasoning():
            sealed = len(encode(part.sealed)) if part.sealed else 0
            return estimate_tokens(part.text) + tokens_of_size(sealed)
        case ToolCall():
            return _PER_MESSAGE + tokens_of_size(len(encode(shorten_arguments(part.arguments))))
        case _:
            assert_never(part)


_FLOOR = 64_000
_LARGE_WINDOW = 512_000
_SMALL_WINDOW_THRESHOLD = 0.75
_HIGHEST_THRESHOLD = 0.85
_MOST_SUMMARY = 10_000
LEAST_SUMMARY = 300


class TokenBudget(Value):
    """Budgets in tokens for a request and for the parts of the block."""

    # Maximum of a request.
    limit: int
    # A larger request is compacted.
    threshold: int
    # Pruning suffices if it brings a request below this.
    content: int
    # For the newest messages.
    tail: int
    # For parts of the block, like all that follow.
    summary: int
    rules: int
    request: int
    todos: int
    names: int
    files: int


def budget_for(
    window: int, fixed: int, rules: CompressionSettings, *, max_tokens: int | None = None
) -> TokenBudget:
    """Compute the budgets of a window; every request uses `fixed` tokens of it."""
    reserved = min(max_tokens, window // 2) if max_tokens else 0
    usable = window - reserved
    limit = window - (reserved or window // 10)
    share = rules.threshold
    if window < _LARGE_WINDOW:
        share = max(share, _SMALL_WINDOW_THRESHOLD)
    threshold = min(max(int(usable * share), _FLOOR), int(usable * _HIGHEST_THRESHOLD), limit)
    left = max(0, threshold - fixed)
    ratio = max(0.1, min(0.8, rules.target_ratio))
    return TokenBudget(
        limit=limit,
        threshold=threshold,
        content=fixed + left * 55 // 100,
        tail=min(int(threshold * ratio), left * 35 // 100),
        summary=max(LEAST_SUMMARY, min(window // 20, _MOST_SUMMARY)),
        rules=max(200, window // 8),
        request=max(200, window // 8),
        todos=max(100, window // 20),
        names=max(60, min(1_000, window // 40)),
        files=max(100, min(4_000, window // 12)),
    )


def reduce_budget(budget: TokenBudget, percent: int) -> TokenBudget:
    """Reduce the budgets of content that can be looked up again."""
    if percent == 100:
        return budget
    names = ("todos", "names", "files")
    return replace(budget, **{name: getattr(budget, name) * percent // 100 for name in names})


Summarise = Callable[[Prompt, Meter], Awaitable[Reply]]
Hints = Callable[[tuple[Message, ...]], Awaitable[str]]
# The new system prompt, "" if it stays, and the sources of its memories.
Renew = Callable[[Transcript, int], Awaitable[tuple[str, tuple[str, ...]]]]


async def keep_system(_transcript: Transcript, _window: int) -> tuple[str, tuple[str, ...]]:
    return "", ()


async def no_hints(_messages: tuple[Message, ...]) -> str:
    return ""


class EngineDeps(NamedTuple):
    """Dependencies of a context engine for one session."""

    session_id: str
    # Asks a model.
    summarise: Summarise
    clock: Clock
    rules: CompressionSettings = CompressionSettings()
    cwd: str = ""
    # Returns what a summary must keep.
    hints: Hints = no_hints
    # Removes secrets from summary requests.
    redact: Callable[[str], str] = str
    # Returns a new system text for a window, or "".
    renew: Renew = keep_system
