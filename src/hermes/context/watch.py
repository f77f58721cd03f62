"""Dependencies of the built-in engine and its view of request sizes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.context.room import CompressionRules, TokenBudget, budget_for
from hermes.context.tokens import TokenGauge
from hermes.core.messages import Message
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.transcript import Transcript
from hermes.core.world import Clock

Summarise = Callable[[Prompt, Meter], Awaitable[Reply]]
Hints = Callable[[tuple[Message, ...]], Awaitable[str]]


Renew = Callable[[Transcript, int], Awaitable[str]]


async def keep_system(_transcript: Transcript, _window: int) -> str:
    return ""


async def no_hints(_messages: tuple[Message, ...]) -> str:
    return ""


class EngineDeps:
    """Dependencies for one session. `summarise` asks a model; `hints` returns what a summary
    must keep; `redact` removes secrets from summary requests. `renew` returns a new system text
    for a window, or ""."""

    def __init__(
        self,
        session_id: str,
        summarise: Summarise,
        *,
        clock: Clock,
        rules: CompressionRules | None = None,
        cwd: str = "",
        hints: Hints = no_hints,
        redact: Callable[[str], str] = str,
        renew: Renew = keep_system,
    ) -> None:
        self.session_id = session_id
        self.summarise = summarise
        self.clock = clock
        self.rules = rules or CompressionRules()
        self.cwd = cwd
        self.hints = hints
        self.redact = redact
        self.renew = renew


class SizeMonitor:
    """Sizes and limits of requests, in estimated tokens."""

    def __init__(self, rules: CompressionRules) -> None:
        self.gauge = TokenGauge()
        self.rules = rules

    def budget(self, transcript: Transcript, prompt: Prompt, window: int) -> TokenBudget:
        """Returns the budgets; the window shrinks by the factor of our underestimate."""
        scale = self.gauge.scale(transcript, prompt)
        most = int(prompt.max_tokens / scale) if prompt.max_tokens else None
        fixed = self.gauge.fixed_tokens(prompt)
        return budget_for(max(1, int(window / scale)), fixed, self.rules, max_tokens=most)
