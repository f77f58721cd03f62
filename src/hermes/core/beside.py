"""Adds text from hooks to the user message in the requests of one turn. The text enters no stored
message."""

from __future__ import annotations

from hermes.codec.values import replace
from hermes.core.messages import Message, Text, UserMessage
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript


class HookContext:
    """One per session. The changed message is built once, so that consecutive requests share their
    prefix."""

    def __init__(self) -> None:
        self._made: tuple[Message, str, UserMessage] | None = None

    def add_to(self, prompt: Prompt, transcript: Transcript) -> Prompt:
        if not transcript.hook_text:
            return prompt
        place = _message_position(prompt.messages, transcript)
        if place is None:
            return prompt
        message = self._join(prompt.messages[place], transcript.hook_text)
        messages = (*prompt.messages[:place], message, *prompt.messages[place + 1 :])
        return replace(prompt, messages=messages)

    def _join(self, said: Message, words: str) -> UserMessage:
        assert isinstance(said, UserMessage)
        if self._made is None or self._made[0] is not said or self._made[1] != words:
            joined = replace(said, parts=(*said.parts, Text(text=f"\n\n{words}")))
            self._made = (said, words, joined)
        return self._made[2]


def _message_position(messages: tuple[Message, ...], transcript: Transcript) -> int | None:
    """The position of the current turn's message in a request. If compaction removed or changed it,
    the position of the newest user message."""
    start = transcript.turn_starts[-1] if transcript.turn_starts else 0
    begun = transcript.messages[start] if start < len(transcript.messages) else None
    newest = None
    for place in range(len(messages) - 1, -1, -1):
        if messages[place] is begun:
            return place
        if newest is None and isinstance(messages[place], UserMessage):
            newest = place
    return newest
