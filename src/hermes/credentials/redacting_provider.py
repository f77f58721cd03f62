"""Removes configured secrets from every prompt before it is sent to a model, except from what a
person typed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from hermes.codec.values import IdentityCache, replace
from hermes.core.messages import Message, Reasoning
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply, ToolSpec
from hermes.credentials.event_redactor import TreeRedactor
from hermes.credentials.redaction import SecretRedactor

Tools = tuple[ToolSpec, ...]


class _PromptRedactor(TreeRedactor):
    def clean(self, value: Any) -> Any:
        if isinstance(value, str) and value in self._redactor.typed:
            return value
        return super().clean(value)

    def _reasoning(self, reasoning: Reasoning) -> Reasoning:
        """Redact a reasoning block. A sealed block is signed as a whole: the vendor rejects it with
        another text."""
        clean = super()._reasoning(reasoning)
        return clean if clean is reasoning else replace(clean, sealed=None)


class RedactionGuard:
    """Wraps every provider of a run. System texts and tools are long and shared by many sessions,
    so their redacted form is cached here."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self.redactor = redactor
        self._known = (0, False)
        # Images are files, and the paths must stay valid.
        fixed = frozenset(("file", "media_type"))
        self.redact_value = _PromptRedactor(redactor, redactor.redact_known, fixed).clean
        self._tools: IdentityCache[Tools, Tools] = IdentityCache(self.redact_value)
        self._systems: IdentityCache[str, str] = IdentityCache(redactor.redact_known)

    def __call__(self, inner: Provider) -> RedactingProvider:
        return RedactingProvider(inner, self)

    def redact_fixed(self, system: str, tools: Tools, known: int) -> tuple[str, Tools]:
        """Redact system text and tools. `known` is the number of known values; when it changes, the
        caches are cleared."""
        state = known, self.redactor.is_loaded
        if state != self._known:
            self._known = state
            self._tools.clear()
            self._systems.clear()
        return self._systems(system), self._tools(tools)


class RedactingProvider:
    """Removes secrets from prompts. It scans each message once, and again when more values are
    known. A prompt without secrets is passed on unchanged."""

    def __init__(self, inner: Provider, guard: RedactionGuard) -> None:
        self._inner = inner
        self._guard = guard
        self._redactor = guard.redactor
        self._known = 0
        self._seen: list[tuple[Message, Message]] = []

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        return self._inner.reply(self._clean(prompt))

    def _clean(self, prompt: Prompt) -> Prompt:
        count = self._redactor.count()
        if not count:
            return prompt
        if count != self._known:
            self._known, self._seen = count, []
        if len(prompt.messages) > 1 and not self._seen:
            # A resumed history, whose messages were not scanned as they were added.
            self._redactor.load()
        system, tools = self._guard.redact_fixed(prompt.system, prompt.tools, count)
        messages = self._messages(prompt.messages)
        if messages is prompt.messages and system == prompt.system and tools is prompt.tools:
            return prompt
        return replace(prompt, system=system, tools=tools, messages=messages)

    def _messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Scan only the messages added since the last call."""
        seen, same = self._seen, True
        for at, message in enumerate(messages):
            if at >= len(seen) or seen[at][0] is not message:
                del seen[at:]
                seen.append((message, self._guard.redact_value(message)))
            same &= seen[at][1] is message
        return messages if same else tuple(clean for _, clean in seen[: len(messages)])
