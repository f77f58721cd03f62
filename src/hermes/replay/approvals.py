"""A policy behind a divergence: what a person allowed then is allowed again, nothing else is."""

from __future__ import annotations

from hermes.core.effects import Allow, Ask, Decision, Effect, Principal, Scope
from hermes.core.events import ApprovalAnswered, ApprovalAsked
from hermes.core.gate import DENY
from hermes.core.ports import ConversationText, Policy
from hermes.replay.score import ExpectedEvents


class RecordedApprovals:
    """As long as the session is led by its record, its questions are on it and `inner` decides."""

    def __init__(self, inner: Policy, score: ExpectedEvents) -> None:
        self._inner = inner
        self._score = score
        self._allowed = _is_allowed(score)

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        decision = self._inner.decide(effect, principal, origins, seen)
        if isinstance(decision, Ask) and self._score.is_free and effect in self._allowed:
            return Allow(lifted=True)
        return decision

    def origin(self, effect: Effect) -> str:
        return self._inner.origin(effect)

    def remember(self, effect: Effect, scope: Scope) -> None:
        self._inner.remember(effect, scope)


def _is_allowed(score: ExpectedEvents) -> list[Effect]:
    asked = {event.id: event.effect for event in score.events if isinstance(event, ApprovalAsked)}
    return [
        asked[event.id]
        for event in score.events
        if isinstance(event, ApprovalAnswered) and event.choice != DENY and event.id in asked
    ]
