"""Keeps from the model who people are: phone numbers, mail addresses and ids become digests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.core.messages import Message, Text, UserMessage
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import View

if TYPE_CHECKING:
    from hermes.policy.redact.redactor import Redactor

# Here the person at the keyboard owns the home; elsewhere others speak, too.
AT_HOME = frozenset(("acp", "api", "batch", "cli", "cron", "mcp", "python"))


def hides_people(source: str, *, wanted: bool) -> bool:
    return wanted and source not in AT_HOME


def without_people(view: View) -> View:
    """The same view, in which people cannot be told by what they wrote. The journal keeps it."""
    hidden = _PiiMask()

    def seen(transcript: Transcript) -> Prompt:
        prompt = view(transcript)
        messages = tuple(map(hidden.message, prompt.messages))
        return replace(prompt, system=hidden.text(prompt.system), messages=messages)

    return seen


class _PiiMask:
    """Each message is looked at once, so that a prompt goes on beginning as it did."""

    def __init__(self) -> None:
        self._redactor: Redactor | None = None
        self._seen: dict[int, tuple[Message, Message]] = {}
        self._texts: dict[str, str] = {}

    def message(self, message: Message) -> Message:
        if not isinstance(message, UserMessage):
            return message
        if id(message) not in self._seen:
            parts = tuple(
                Text(text=self._redact(part.text)) if isinstance(part, Text) else part
                for part in message.parts
            )
            clean = message if parts == message.parts else replace(message, parts=parts)
            self._seen[id(message)] = (message, clean)
        return self._seen[id(message)][1]

    def text(self, text: str) -> str:
        if text not in self._texts:
            self._texts[text] = self._redact(text)
        return self._texts[text]

    def _redact(self, text: str) -> str:
        if self._redactor is None:
            from hermes.policy.redact.redactor import Redactor

            self._redactor = Redactor(formats=False, pii=True)
        return self._redactor.redact(text, "model").text
