"""The policy of a child session: never more than the policy of its parent allows."""

from __future__ import annotations

from hermes.core.effects import Allow, Ask, Decision, Deny, Effect, Principal, Scope
from hermes.core.ports import ConversationText, Policy

_RANK = {Allow: 0, Ask: 1, Deny: 2}


class ChildPolicy:
    """Decides with the policies of the child session and of its parent; the stricter one counts."""

    def __init__(self, own: Policy, parent: Policy) -> None:
        self._own = own
        self._parent = parent

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        own = self._own.decide(effect, principal, origins, seen)
        parent = self._parent.decide(effect, principal, origins, seen)
        return parent if _RANK[type(parent)] > _RANK[type(own)] else own

    def origin(self, effect: Effect) -> str:
        return self._own.origin(effect)

    def remember(self, effect: Effect, scope: Scope) -> None:
        """Store an approval for the child session and its parent, so that siblings need not ask."""
        self._own.remember(effect, scope)
        self._parent.remember(effect, "session" if scope == "always" else scope)
