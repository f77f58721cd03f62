"""The built-in context engine: tracks request sizes and loads the compactor on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.context.budget import EngineDeps, TokenGauge
from hermes.core.events import Compacted
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.session_deps import CompactionRequest
from hermes.core.transcript import Transcript

if TYPE_CHECKING:
    from hermes.context.compactor import Compactor

SAVES_LITTLE = 0.9
# Retry after this many further messages.
_RETRY_AFTER_MESSAGES = 12


# The value of `context.engine` that selects the built-in engine.
BUILT_IN = "compressor"


class BuiltInEngine:
    """The built-in `core.session_deps.ContextEngine` of one session."""

    def __init__(self, deps: EngineDeps) -> None:
        self._deps = deps
        self._gauge = TokenGauge()
        self._compactor: Compactor | None = None
        self._fruitless_at = 0

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        rules = self._deps.rules
        if not rules.enabled:
            return False
        estimated = self._gauge.request_tokens(transcript, prompt)
        few_messages = len(prompt.messages) < rules.hygiene_hard_message_limit
        if few_messages and estimated * 2 < window * min(rules.threshold, 0.5):
            # Provider token counts do not exceed our estimate by that factor.
            return False
        budget = self._gauge.budget(transcript, prompt, window, rules)
        if estimated > budget.limit:
            return True
        if few_messages and estimated < budget.threshold:
            return False
        return not self._is_stuck(transcript)

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        budget = self._gauge.budget(transcript, prompt, window, self._deps.rules)
        return self._gauge.request_tokens(transcript, prompt) <= budget.limit

    async def compact(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        made = await self._get_compactor().compact(transcript, prompt, request, meter)
        if made is None:
            self._fruitless_at = len(transcript.messages)
        return made

    def preview(
        self, transcript: Transcript, prompt: Prompt, request: CompactionRequest
    ) -> Compacted | None:
        return self._get_compactor().preview(transcript, prompt, request)

    def _get_compactor(self) -> Compactor:
        if self._compactor is None:
            # Most conversations never need it.
            from hermes.context.compactor import Compactor

            self._compactor = Compactor(self._deps, self._gauge)
        return self._compactor

    def _is_stuck(self, transcript: Transcript) -> bool:
        """Return whether the last two compactions saved little and nothing has changed."""
        messages, newest = transcript.messages, transcript.compactions[-2:]
        fruitless = [c for c in newest if c.tokens_after > c.tokens_before * SAVES_LITTLE]
        if len(fruitless) == 2 and len(messages) - newest[-1].upto < _RETRY_AFTER_MESSAGES:
            return True
        return (
            0 <= len(messages) - self._fruitless_at < _RETRY_AFTER_MESSAGES
            and self._fruitless_at > 0
        )
