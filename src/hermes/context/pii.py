"""Hides personal data from the model: phone numbers, mail addresses and ids become digests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.core.messages import Message, Text, UserMessage
from hermes.core.prompt import Prompt
from hermes.core.session_deps import View
from hermes.core.transcript import Transcript

if TYPE_CHECKING:
    from hermes.policy.redact.redactor import Redactor

# On these sources only the owner writes; on others, other people do too.
OWNER_SOURCES = frozenset(("acp", "api", "batch", "cli", "cron", "mcp", "python"))


def hides_people(source: str, *, enabled: bool) -> bool:
    return enabled and source not in OWNER_SOURCES


def without_people(view: View) -> View:
    """Return the same view with personal data masked. The journal keeps the original."""
    mask = _PiiMask()

    def masked_view(transcript: Transcript) -> Prompt:
        prompt = view(transcript)
        messages = tuple(map(mask.message, prompt.messages))
        return replace(prompt, system=mask.text(prompt.system), messages=messages)

    return masked_view


class _PiiMask:
    """Masks each message once, so that the beginning of the prompt stays unchanged."""

    def __init__(self) -> None:
        self._redactor: Redactor | None = None
        self._masked: dict[int, tuple[Message, Message]] = {}
        self._texts: dict[str, str] = {}

    def message(self, message: Message) -> Message:
        if not isinstance(message, UserMessage):
            return message
        if id(message) not in self._masked:
            parts = tuple(
                Text(text=self._redact(part.text)) if isinstance(part, Text) else part
                for part in message.parts
            )
            clean = message if parts == message.parts else replace(message, parts=parts)
            self._masked[id(message)] = (message, clean)
        return self._masked[id(message)][1]

    def text(self, text: str) -> str:
        if text not in self._texts:
            self._texts[text] = self._redact(text)
        return self._texts[text]

    def _redact(self, text: str) -> str:
        if self._redactor is None:
            from hermes.policy.redact.redactor import Redactor

            self._redactor = Redactor(formats=False, pii=True)
        return self._redactor.redact(text, "model").text
