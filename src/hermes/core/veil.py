"""What stands between a session and everybody who keeps or watches it: secrets stay behind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from hermes.core.events import DurableEvent, LiveEvent
from hermes.core.messages import ToolCall, ToolResult

# What is shown in place of a secret: `[secret:github#1]`, a private key, a phone number.
LABEL = re.compile(
    r"\[(?:secret|phone|email|id):[a-z0-9_]+(?:#\d+)?\]|\[REDACTED[A-Z ]*\]|\+\d{4}\*{3,}\d{4}"
)


class Veil(Protocol):
    """Of one session. What it lets through holds no secret any more; what needs no change comes
    back as it is."""

    def durable(self, event: DurableEvent) -> DurableEvent: ...

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        """What can be shown now. Letters that may become a secret are held back."""
        ...

    def rest(self) -> Iterable[LiveEvent]:
        """What was held back of a reply that is complete now."""
        ...

    def remarks(self) -> Iterable[LiveEvent]:
        """What the person should know of what was masked; each is given once."""
        ...

    def result(self, result: ToolResult) -> ToolResult: ...

    def lacks(self, call: ToolCall) -> bool:
        """A call out of the journal whose arguments are not what the model wrote: a label stands
        in them for what was not to be kept."""
        ...


class Bare:
    """Lets everything through."""

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
