"""Computes a lower bound for the tokens of a prompt, for any tokenizer."""

from __future__ import annotations

import re
from functools import lru_cache

from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.prompt import Prompt

# No common tokenizer merges two words, or a word and a number, into one token, except for fixed
# phrases; _SHARE allows for those.
_RUNS = re.compile(r"[^\W\d_]+|\d+")
_SHARE = 0.85


class TokenLowerBound:
    """Counts a growing prompt; each message is counted once."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._count = 0

    def of_prompt(self, prompt: Prompt) -> int:
        """Counts system text and messages. Tools are excluded: a template may leave them and their
        calls out."""
        known = len(self._seen)
        if prompt.messages[:known] != self._seen:
            known, self._count = 0, 0
        self._count += sum(map(_count_message, prompt.messages[known:]))
        self._seen = prompt.messages
        return int((self._count + _count_system(prompt.system)) * _SHARE)


@lru_cache(maxsize=8)
def _count_system(text: str) -> int:
    """Cached: many sessions share their system text."""
    return _count_runs(text)


def _count_message(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage():
            return _count_runs(message.text)
        case ToolMessage(results=results):
            return sum(_count_runs(result.text) for result in results)


def _count_runs(text: str) -> int:
    return len(_RUNS.findall(text))
