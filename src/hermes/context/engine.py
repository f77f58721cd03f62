"""The built-in context engine: watches how large requests are, and loads the rest when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.context.watch import Means, Watch
from hermes.core.events import Compacted
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.transcript import Transcript
from hermes.core.turn import Occasion

if TYPE_CHECKING:
    from hermes.context.compactor import Compactor

SAVES_LITTLE = 0.9
# After this many further messages it is worth another try.
_PATIENCE = 12


# The value of `context.engine` that selects the built-in engine.
BUILT_IN = "compressor"


class BuiltInEngine:
    """`core.turn.ContextEngine`, for one session."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._watch = Watch(means.rules)
        self._compactor: Compactor | None = None
        self._fruitless_at = 0

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        rules = self._means.rules
        if not rules.enabled:
            return False
        estimated = self._watch.gauge.estimated(transcript, prompt)
        share = min(rules.threshold, 0.5)
        if estimated * 2 < window * share and len(prompt.messages) < rules.message_limit:
            # No provider's tokens are that much smaller than ours.
            return False
        room = self._watch.room(transcript, prompt, window)
        if estimated > room.limit:
            return True
        if estimated < room.threshold and len(prompt.messages) < rules.message_limit:
            return False
        return not self._is_stuck(transcript)

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        room = self._watch.room(transcript, prompt, window)
        return self._watch.gauge.estimated(transcript, prompt) <= room.limit

    async def compact(
        self, transcript: Transcript, prompt: Prompt, occasion: Occasion, meter: Meter
    ) -> Compacted | None:
        made = await self._loaded().compact(transcript, prompt, occasion, meter)
        if made is None:
            self._fruitless_at = len(transcript.messages)
        return made

    def preview(
        self, transcript: Transcript, prompt: Prompt, occasion: Occasion
    ) -> Compacted | None:
        return self._loaded().preview(transcript, prompt, occasion)

    def _loaded(self) -> Compactor:
        if self._compactor is None:
            # Most conversations end before they are too long.
            from hermes.context.compactor import Compactor

            self._compactor = Compactor(self._means, self._watch)
        return self._compactor

    def _is_stuck(self, transcript: Transcript) -> bool:
        """The last two times saved next to nothing: again is no use before something changes."""
        messages, newest = transcript.messages, transcript.compactions[-2:]
        fruitless = [c for c in newest if c.tokens_after > c.tokens_before * SAVES_LITTLE]
        if len(fruitless) == 2 and len(messages) - newest[-1].upto < _PATIENCE:
            return True
        return 0 <= len(messages) - self._fruitless_at < _PATIENCE and self._fruitless_at > 0
