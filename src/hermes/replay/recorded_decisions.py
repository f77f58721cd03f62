"""Recorded approvals, compactions and hook verdicts."""

from __future__ import annotations

from hermes.codec.values import replace
from hermes.context.budget import EngineDeps
from hermes.context.engine import BuiltInEngine
from hermes.core.effects import Allow, Ask, Decision, Effect, Principal, Scope
from hermes.core.errors import ProviderError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Compacted,
    DurableEvent,
    HookAnswered,
    TurnEnded,
)
from hermes.core.gate import DENY
from hermes.core.hooks import (
    BEFORE_TURN,
    FINAL_ANSWER_HOOK,
    CallOutcome,
    HookVerdict,
    TurnHooks,
    verdict_of,
)
from hermes.core.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage
from hermes.core.ports import ConversationText, Meter, Policy
from hermes.core.prompt import Prompt, Reply
from hermes.core.session_deps import CompactionRequest
from hermes.core.transcript import Transcript
from hermes.replay.expected_events import ExpectedEvents
from hermes.replay.sync_points import SyncPoints


class RecordedApprovals:
    """Allows effects that the user approved in the recording once the session runs past it. While
    the session follows the record, `inner` decides."""

    def __init__(self, inner: Policy, expected: ExpectedEvents) -> None:
        self._inner = inner
        self._expected = expected
        events = expected.events
        asked = {each.id: each.effect for each in events if isinstance(each, ApprovalAsked)}
        self._allowed = [
            asked[event.id]
            for event in expected.events
            if isinstance(event, ApprovalAnswered) and event.choice != DENY and event.id in asked
        ]

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        decision = self._inner.decide(effect, principal, origins, seen)
        if isinstance(decision, Ask) and self._expected.is_free and effect in self._allowed:
            return Allow(lifted=True)
        return decision

    def origin(self, effect: Effect) -> str:
        return self._inner.origin(effect)

    def remember(self, effect: Effect, scope: Scope) -> None:
        self._inner.remember(effect, scope)


NO_SUMMARY = "No summary was made here."


class RecordedEngine:
    """Repeats each compaction with the recorded summary, so that differences show. Past the end of
    the record, conversations are compacted without a summary. Compactions of an engine that is not
    `built_in` are copied."""

    def __init__(self, engine_deps: EngineDeps, sync: SyncPoints, *, built_in: bool = True) -> None:
        self._sync = sync
        self._is_ours = built_in
        self._inner = BuiltInEngine(engine_deps._replace(summarise=self._summary))

    def due(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        if self._sync.due is None:
            return self._inner.due(transcript, prompt, window)
        return isinstance(self._sync.due, Compacted)

    def fits(self, transcript: Transcript, prompt: Prompt, window: int) -> bool:
        due = self._sync.due
        if due is None:
            return self._inner.fits(transcript, prompt, window)
        return not (isinstance(due, TurnEnded) and due.detail == "ContextFull")

    async def compact(
        self, transcript: Transcript, prompt: Prompt, occasion: CompactionRequest, meter: Meter
    ) -> Compacted | None:
        due = self._sync.due
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
        due = self._sync.due
        if not isinstance(due, Compacted) or not due.summary:
            raise ProviderError(NO_SUMMARY)
        message = AssistantMessage(parts=(Text(text=due.summary),))
        return Reply(message=message, usage=Usage(), model="", provider="")


def recorded_hooks(sync: SyncPoints, events: list[DurableEvent]) -> TurnHooks | None:
    """Returns None if no hook answered in the session."""
    heard = any(isinstance(event, HookAnswered) for event in events)
    return RecordedHooks(sync) if heard else None


class RecordedHooks:
    """Returns the recorded hook verdicts. Recorded results already contain changes by hooks."""

    holds_text = False

    def __init__(self, sync: SyncPoints) -> None:
        self._sync = sync

    @property
    def _due(self) -> HookAnswered | None:
        due = self._sync.due
        return due if isinstance(due, HookAnswered) else None

    @property
    def sources(self) -> tuple[str, ...]:
        due = self._due
        return due.origins if due is not None else ()

    async def before_turn(self) -> str:
        due = self._due
        return due.text if due is not None and due.hook == BEFORE_TURN else ""

    async def before_tool(self, call: ToolCall) -> HookVerdict | None:
        due = self._due
        return verdict_of(due) if due is not None and due.call_id == call.id else None

    async def after_tool(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: CallOutcome
    ) -> str | None:
        return None

    async def before_final_answer(self, text: str) -> str | None:
        due = self._due
        return due.text if due is not None and due.hook == FINAL_ANSWER_HOOK else None
