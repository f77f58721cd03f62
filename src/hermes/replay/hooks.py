"""Hooks of a replay: nobody is asked again, what they said stands in the record."""

from __future__ import annotations

from hermes.core.events import DurableEvent, HookAnswered
from hermes.core.hooks import (
    BEFORE_TURN,
    FINAL_ANSWER_HOOK,
    CallOutcome,
    HookVerdict,
    TurnHooks,
    verdict_of,
)
from hermes.core.messages import ToolCall, ToolResult
from hermes.replay.gates import SyncPoints


def recorded_hooks(gates: SyncPoints, events: list[DurableEvent]) -> TurnHooks | None:
    """None for a session in which no hook had a say."""
    heard = any(isinstance(event, HookAnswered) for event in events)
    return RecordedHooks(gates) if heard else None


class RecordedHooks:
    """What they made of results is in the results of then already."""

    holds_text = False

    def __init__(self, gates: SyncPoints) -> None:
        self._gates = gates

    @property
    def sources(self) -> tuple[str, ...]:
        due = self._gates.due
        return due.origins if isinstance(due, HookAnswered) else ()

    async def before_turn(self) -> str:
        match self._gates.due:
            case HookAnswered(hook=hook, text=text) if hook == BEFORE_TURN:
                return text
            case _:
                return ""

    async def before_tool(self, call: ToolCall) -> HookVerdict | None:
        match self._gates.due:
            case HookAnswered(call_id=call_id) as due if call_id == call.id:
                return verdict_of(due)
            case _:
                return None

    async def after_tool(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: CallOutcome
    ) -> str | None:
        return None

    async def before_final_answer(self, text: str) -> str | None:
        match self._gates.due:
            case HookAnswered(hook=hook, text=words) if hook == FINAL_ANSWER_HOOK:
                return words
            case _:
                return None
