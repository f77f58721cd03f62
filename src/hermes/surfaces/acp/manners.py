"""The session modes of an editor and the policy that applies them."""

from __future__ import annotations

from acp.schema import SessionMode, SessionModeState

from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    Decision,
    DeletePath,
    Deny,
    Effect,
    Principal,
    Scope,
    WritePath,
)
from hermes.core.ports import ConversationText, Policy

DEFAULT_MODE = "default"
PLAN_MODE = "plan"
MODES = (
    SessionMode(id=DEFAULT_MODE, name="Default", description="Ask before each file change."),
    SessionMode(
        id="accept_edits",
        name="Accept Edits",
        description="Change files in the project without asking.",
    ),
    SessionMode(
        id="dont_ask", name="Don't Ask", description="Ask only about effects outside the project."
    ),
    SessionMode(id=PLAN_MODE, name="Plan", description="Read and plan; change and run nothing."),
)
MODE_NAMES = tuple(mode.id for mode in MODES)


class ModePolicy:
    """Wraps a policy; the mode can only make it stricter. What a person allowed for the session is
    not asked again."""

    def __init__(self, inner: Policy) -> None:
        self.mode = DEFAULT_MODE
        self._inner = inner
        self._allowed: set[str] = set()

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        decision = self._inner.decide(effect, principal, origins, seen)
        if not isinstance(decision, Allow) or decision.harmless:
            return decision
        if self.mode == PLAN_MODE and not _is_read_only(effect):
            reason = "The editor is in plan mode: say what you would do, and change nothing."
            return Deny(reason=reason, category="settings")
        if self.mode != DEFAULT_MODE or not isinstance(effect, WritePath | DeletePath):
            return decision
        if effect.path in self._allowed:
            return decision
        verb = "written" if isinstance(effect, WritePath) else "deleted"
        return Ask(
            reason=f"{effect.path} would be {verb}.",
            category="settings",
            scopes=("once", "session"),
        )

    def origin(self, effect: Effect) -> str:
        return self._inner.origin(effect)

    def remember(self, effect: Effect, scope: Scope) -> None:
        if isinstance(effect, WritePath | DeletePath) and scope == "session":
            self._allowed.add(effect.path)
        self._inner.remember(effect, scope)


def _is_read_only(effect: Effect) -> bool:
    return isinstance(effect, CallServer) and not effect.changes


def mode_state(current: str) -> SessionModeState:
    return SessionModeState(current_mode_id=current, available_modes=list(MODES))
