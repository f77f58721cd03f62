"""Makes a prompt fit the window of a local model: the system text and the newest messages stay."""

from __future__ import annotations

import re

from hermes.codec.values import replace
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolMessage,
    UserMessage,
    user_says,
)
from hermes.core.prompt import Prompt

CUT = "\n[… left out …]\n"

# Until the model has counted a prompt: few texts need more tokens than one for three bytes.
_FIRST_BYTES_PER_TOKEN = 3.0
_LEAST_BYTES_PER_TOKEN = 0.5
_MOST_BYTES_PER_TOKEN = 5.0
# Counts differ from text to text; a little less is better than a refusal.
_CAUTION = 0.95
_MESSAGE_TOKENS = 8
_ANSWER_SHARE = 4
_MOST_ANSWER = 1_024
_LEAST_ANSWER = 64
# After a cut the conversation may grow again for a while before the next one, so that what the
# model has read already stays the beginning of what it reads next.
_KEPT_SHARE = 0.6
SYSTEM_SHARE = 0.75
"""The most of a prompt that may be instructions and tools."""
_COUNTED = re.compile(r'"n_prompt_tokens"\s*:\s*(\d+)')


class Fitting:
    """One per session: it remembers where the visible part of the conversation begins."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._bytes_per_token = _FIRST_BYTES_PER_TOKEN
        self._start = 0
        self._first: Message | None = None

    @property
    def budget(self) -> int:
        """The most tokens that a prompt may have; the rest is for the answer."""
        return self.window - min(_MOST_ANSWER, self.window // _ANSWER_SHARE)

    @property
    def shortened(self) -> bool:
        """Earlier messages are out of sight."""
        return self._start > 0

    def fit(self, prompt: Prompt, *, most_tokens: int) -> Prompt:
        """The prompt as it can be sent, with a limit for the answer: `most_tokens`, the prompt's
        own wish, or what the window leaves."""
        system = self.clipped(prompt.system, int(self.budget * SYSTEM_SHARE))
        messages = self._visible(prompt.messages, self.budget - self.tokens(system))
        used = self.tokens(system) + sum(map(self._size, messages))
        room = max(_LEAST_ANSWER, self.window - used)
        return replace(
            prompt,
            system=system,
            messages=messages,
            max_tokens=min(prompt.max_tokens or most_tokens, room),
        )

    def tokens(self, text: str) -> int:
        return int(len(text.encode("utf-8", "replace")) / self._bytes_per_token) + 1

    def clipped(self, text: str, tokens: int) -> str:
        """Beginning and end stay: in them is what a text is about."""
        if self.tokens(text) <= tokens:
            return text
        characters = int(len(text) * tokens / self.tokens(text)) - len(CUT)
        head, tail = max(0, characters * 2 // 3), max(0, characters // 3)
        return text[:head] + CUT + (text[-tail:] if tail else "")

    def learn(self, prompt: Prompt, counted: int) -> None:
        """The model counted the tokens of this prompt."""
        texts = [prompt.system, *map(_words, prompt.messages)]
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        net = max(1, counted - _MESSAGE_TOKENS * len(texts))
        found = size / net * _CAUTION
        self._bytes_per_token = min(_MOST_BYTES_PER_TOKEN, max(_LEAST_BYTES_PER_TOKEN, found))

    def learn_refusal(self, prompt: Prompt, error_body: str) -> None:
        """The prompt was too long after all."""
        counted = _COUNTED.search(error_body)
        before = self._bytes_per_token
        if counted:
            self.learn(prompt, int(counted[1]))
        # A second refusal for the same reason must not lead to the same prompt.
        self._bytes_per_token = min(self._bytes_per_token, before * _CAUTION)

    def _visible(self, messages: tuple[Message, ...], room: int) -> tuple[Message, ...]:
        if not self._still_begins(messages):
            self._start = 0
        if sum(map(self._size, messages[self._start :])) > room:
            self._start = self._new_start(messages, int(room * _KEPT_SHARE))
        kept = messages[self._start :]
        self._first = kept[0] if kept else None
        if len(kept) == 1 and self._size(kept[0]) > room:
            clipped = self.clipped(_words(kept[0]), room - _MESSAGE_TOKENS)
            return (_with_words(kept[0], clipped),)
        return kept

    def _still_begins(self, messages: tuple[Message, ...]) -> bool:
        """False when the conversation was rewound or summed up since."""
        return self._start < len(messages) and messages[self._start] == self._first

    def _new_start(self, messages: tuple[Message, ...], room: int) -> int:
        """Where the longest end begins that fits; at least the last message stays."""
        start = len(messages) - 1
        used = self._size(messages[start])
        while start > 0 and used + self._size(messages[start - 1]) <= room:
            start -= 1
            used += self._size(messages[start])
        return start

    def _size(self, message: Message) -> int:
        return self.tokens(_words(message)) + _MESSAGE_TOKENS


def _words(message: Message) -> str:
    match message:
        case UserMessage(text=text) | AssistantMessage(text=text):
            return text
        case ToolMessage(results=results):
            return "\n".join(result.text for result in results)


def _with_words(message: Message, text: str) -> Message:
    if isinstance(message, AssistantMessage):
        return replace(message, parts=(Text(text=text),))
    return user_says(text)
