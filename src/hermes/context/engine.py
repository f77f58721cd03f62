"""The built-in context engine: watches how large requests are, and loads the rest when needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes.context.room import CompressionRules, Room, room_in
from hermes.context.tokens import Gauge
from hermes.core.events import Compacted
from hermes.core.messages import Message
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.transcript import Transcript
from hermes.core.turn import Occasion
from hermes.core.world import Clock

if TYPE_CHECKING:
    from hermes.context.compactor import Compactor

SAVES_LITTLE = 0.9
# After this many further messages it is worth another try.
_PATIENCE = 12

Summarise = Callable[[Prompt, Meter], Awaitable[Reply]]
Hints = Callable[[tuple[Message, ...]], Awaitable[str]]


async def no_hints(_messages: tuple[Message, ...]) -> str:
    return ""


class Means:
    """What the engine of one session works with. `summarise` asks a model; `hints` gives what else
    a summary must keep; `redact` takes secrets out of what is sent for one."""

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
    ) -> None:
        self.session_id = session_id
        self.summarise = summarise
        self.clock = clock
        self.rules = rules or CompressionRules()
        self.cwd = cwd
        self.hints = hints
        self.redact = redact


class Watch:
    """How large requests are, and how large they may be, in our own estimated tokens."""

    def __init__(self, rules: CompressionRules) -> None:
        self.gauge = Gauge()
        self.rules = rules

    def room(self, transcript: Transcript, prompt: Prompt, window: int) -> Room:
        """The window is taken to be as much smaller as our estimates have been too low."""
        scale = self.gauge.scale(transcript, prompt)
        most = int(prompt.max_tokens / scale) if prompt.max_tokens else None
        fixed = self.gauge.fixed(prompt)
        return room_in(max(1, int(window / scale)), fixed, self.rules, max_tokens=most)


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
        if estimated * 4 < window and len(prompt.messages) < rules.message_limit:
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
