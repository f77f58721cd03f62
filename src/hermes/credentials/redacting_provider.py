"""Removes configured secrets from every prompt before it is sent to a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from msgspec import Struct

from hermes.codec.values import IdentityCache, replace
from hermes.core.messages import Image, Message, Reasoning
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply, ToolSpec
from hermes.credentials.redaction import SecretRedactor

Tools = tuple[ToolSpec, ...]


class RedactionGuard:
    """Wraps every provider of a run. System texts and tools are long and shared by many sessions,
    so their redacted form is cached here."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self.redactor = redactor
        self._known = (0, False)
        self._tools: IdentityCache[Tools, Tools] = IdentityCache(self.redact_value)
        self._systems: IdentityCache[str, str] = IdentityCache(redactor.redact_known)

    def __call__(self, inner: Provider) -> RedactingProvider:
        return RedactingProvider(inner, self)

    def redact_fixed(self, system: str, tools: Tools, known: int) -> tuple[str, Tools]:
        """System text and tools without the `known` values, given as their number."""
        state = known, self.redactor.is_loaded
        if state != self._known:
            self._known = state
            self._tools.clear()
            self._systems.clear()
        return self._systems(system), self._tools(tools)

    def redact_value(self, value: Any) -> Any:
        """Returns the same object if nothing is masked."""
        if isinstance(value, str):
            clean = self.redactor.redact_known(value)
            return value if clean == value else clean
        if isinstance(value, Reasoning):
            # Signed as a whole: the vendor rejects a changed block.
            plain = self._struct(replace(value, sealed=None))
            sealed = value.sealed and self.redact_value(value.sealed)
            same = plain.text == value.text and sealed is value.sealed
            return value if same else plain
        if isinstance(value, Image):
            return value
        if isinstance(value, Struct):
            return self._struct(value)
        if isinstance(value, list | tuple):
            items = [self.redact_value(item) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else type(value)(items)
        if isinstance(value, dict):
            pairs = {self.redact_value(key): self.redact_value(item) for key, item in value.items()}
            return value if all(pairs.get(k) is v for k, v in value.items()) else pairs
        return value

    def _struct(self, value: Any) -> Any:
        changes = {}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if (clean := self.redact_value(item)) is not item:
                changes[name] = clean
        return replace(value, **changes) if changes else value


class RedactingProvider:
    """Scans each message once, and again when more values are known. A prompt without secrets is
    passed on unchanged."""

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
        """Scans only the messages added since the last call."""
        seen, same = self._seen, True
        for at, message in enumerate(messages):
            if at >= len(seen) or seen[at][0] is not message:
                del seen[at:]
                seen.append((message, self._guard.redact_value(message)))
            same &= seen[at][1] is message
        return messages if same else tuple(clean for _, clean in seen[: len(messages)])
