"""Compactions of a replay: made when they were made then, around the summaries of then."""

from __future__ import annotations

from hermes.codec.values import replace
from hermes.context.budget import EngineDeps
from hermes.context.engine import BuiltInEngine
from hermes.core.errors import ProviderError
from hermes.core.events import Compacted, TurnEnded
from hermes.core.messages import AssistantMessage, Text, Usage
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.transcript import Transcript
from hermes.core.turn import CompactionRequest
from hermes.replay.gates import SyncPoints

NO_SUMMARY = "No summary was made here."


class RecordedEngine:
    """Does all but the model's part again, so that a difference shows. The calls for summaries
    stand in the record and are put in from there. Where there is no record any more, conversations
    are shortened without a summary. What was made by an engine that is not `built_in` is taken as
    it was."""

    def __init__(self, means: EngineDeps, gates: SyncPoints, *, built_in: bool = True) -> None:
        self._gates = gates
        self._is_ours = built_in
        means.summarise = self._summary
        self._inner = BuiltInEngine(means)

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        if self._gates.due is None:
            return self._inner.due(transcript, prompt, window)
        return isinstance(self._gates.due, Compacted)

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        due = self._gates.due
        if due is None:
            return self._inner.fits(transcript, prompt, window)
        return not (isinstance(due, TurnEnded) and due.detail == "ContextFull")

    async def compact(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        due = self._gates.due
        if isinstance(due, Compacted) and not self._is_ours:
            return due
        if isinstance(due, Compacted):
            occasion = replace(occasion, window=due.window)
        elif due is not None:
            return None
        return await self._inner.compact(transcript, prompt, occasion, meter)

    def preview(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest
    ) -> Compacted | None:
        return self._inner.preview(transcript, prompt, occasion)

    async def _summary(self, _prompt: Prompt, _meter: Meter) -> Reply:
        due = self._gates.due
        if not isinstance(due, Compacted) or not due.summary:
            raise ProviderError(NO_SUMMARY)
        said = AssistantMessage(parts=(Text(text=due.summary),))
        return Reply(message=said, usage=Usage(), model="", provider="")
