"""Hooks of a replay: nobody is asked again, what they said stands in the record."""

from __future__ import annotations

from hermes.core.events import DurableEvent, HookAnswered
from hermes.core.hooking import BEFORE_TURN, LAST_WORDS, verdict_of
from hermes.core.hooks import Fate, TurnHooks, Verdict
from hermes.core.messages import ToolCall, ToolResult
from hermes.replay.gates import Gates


def played_hooks(gates: Gates, events: list[DurableEvent]) -> TurnHooks | None:
    """None for a session in which no hook had a say."""
    heard = any(isinstance(event, HookAnswered) for event in events)
    return PlayedHooks(gates) if heard else None


class PlayedHooks:
    """What they made of results is in the results of then already."""

    holds_text = False

    def __init__(self, gates: Gates) -> None:
        self._gates = gates

    @property
    def sources(self) -> tuple[str, ...]:
        due = self._gates.due
        return due.origins if isinstance(due, HookAnswered) else ()

    async def turn_begins(self) -> str:
        match self._gates.due:
            case HookAnswered(hook=hook, text=text) if hook == BEFORE_TURN:
                return text
            case _:
                return ""

    async def call_comes(self, call: ToolCall) -> Verdict | None:
        match self._gates.due:
            case HookAnswered(call_id=call_id) as due if call_id == call.id:
                return verdict_of(due)
            case _:
                return None

    async def call_went(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: Fate
    ) -> str | None:
        return None

    async def last_words(self, text: str) -> str | None:
        match self._gates.due:
            case HookAnswered(hook=hook, text=words) if hook == LAST_WORDS:
                return words
            case _:
                return None
