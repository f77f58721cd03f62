"""The fewest tokens that a prompt can have, whatever the tokenizer."""

from __future__ import annotations

import re
from functools import lru_cache

from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.core.prompt import Prompt

# No tokenizer in use makes one token of two words, or of a word and a number, but for some fixed
# phrases; those are what the share leaves out.
_RUNS = re.compile(r"[^\W\d_]+|\d+")
_SHARE = 0.85


class Counting:
    """Counts a growing prompt: each message once."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._count = 0

    def least(self, prompt: Prompt) -> int:
        """Of system text and messages. Tools do not count: a template may leave them out, and the
        calls in the conversation with them."""
        known = len(self._seen)
        if prompt.messages[:known] != self._seen:
            known, self._count = 0, 0
        self._count += sum(map(_runs_in, prompt.messages[known:]))
        self._seen = prompt.messages
        return int((self._count + _runs_in_system(prompt.system)) * _SHARE)


@lru_cache(maxsize=8)
def _runs_in_system(text: str) -> int:
    """Many sessions begin with the same one."""
    return _runs(text)


def _runs_in(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage():
            return _runs(message.text)
        case ToolMessage(results=results):
            return sum(_runs(result.text) for result in results)


def _runs(text: str) -> int:
    return len(_RUNS.findall(text))
