"""Redacts secrets from events before they are stored or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from hermes.core.events import DurableEvent, LiveEvent
from hermes.core.messages import ToolCall, ToolResult

# The label that replaces a secret: `[secret:github#1]`, a private key, a phone number.
LABEL = re.compile(
    r"\[(?:secret|phone|email|id):[a-z0-9_]+(?:#\d+)?\]|\[REDACTED[A-Z ]*\]|\+\d{4}\*{3,}\d{4}"
)


class EventRedactor(Protocol):
    """One per session. Its results hold no secrets; an event that needs no change is returned as
    is."""

    def durable(self, event: DurableEvent) -> DurableEvent: ...

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        """The deltas that can be shown now. Characters that may become part of a secret are held
        back."""
        ...

    def rest(self) -> Iterable[LiveEvent]:
        """The held-back end of a reply that is complete."""
        ...

    def remarks(self) -> Iterable[LiveEvent]:
        """Notices about what was redacted; each is returned once."""
        ...

    def result(self, result: ToolResult) -> ToolResult: ...

    def lacks(self, call: ToolCall) -> bool:
        """Whether the arguments of a journaled call contain a label instead of the model's text."""
        ...


class NoRedaction:
    """Redacts nothing."""

    def durable(self, event: DurableEvent) -> DurableEvent:
        return event

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        return (event,)

    def rest(self) -> Iterable[LiveEvent]:
        return ()

    def remarks(self) -> Iterable[LiveEvent]:
        return ()

    def result(self, result: ToolResult) -> ToolResult:
        return result

    def lacks(self, call: ToolCall) -> bool:
        return False
