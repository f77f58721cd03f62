"""Decides when a task deserves a review: much work, or a correction."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.core.events import Event, MessageReceived, ToolFinished, TurnEnded, TurnStarted
from hermes.learning.corrections import is_correction

CHANGES = "skill_manage"
# Tools that do not count as work.
OWN_TOOLS = frozenset(("skills_list", "skill_view", CHANGES, "memory", "todo", "clarify"))

TriggerReason = Literal["task", "session", "correction"]


class ReviewTrigger(Value):
    why: TriggerReason
    calls: int


class TriggerWatch:
    """Follows the events of a session from its start. A limit of 0 is disabled."""

    def __init__(self, *, task_calls: int, session_calls: int) -> None:
        self._task_calls = task_calls
        self._session_calls = session_calls
        self._calls = 0
        self._since = 0
        self._is_answered = False
        self._is_corrected = False
        self._has_saved = False

    def note(self, event: Event) -> ReviewTrigger | None:
        """Returns an occasion when the event ends a turn that deserves a review."""
        match event:
            case MessageReceived(message=message):
                if message.origin == "user" and self._is_answered and is_correction(message.text):
                    self._is_corrected = True
            case TurnStarted():
                self._calls, self._has_saved = 0, False
            case ToolFinished(result=result) if result.name == CHANGES and not result.failed:
                self._since, self._has_saved = 0, True
            case ToolFinished(result=result) if result.name not in OWN_TOOLS:
                self._calls += 1
                self._since += 1
            case TurnEnded(reason=reason):
                return self._on_turn_end(done=reason == "done")
            case _:
                pass
        return None

    def _on_turn_end(self, *, done: bool) -> ReviewTrigger | None:
        self._is_answered = done
        why = self._why() if done else None
        if why is None:
            return None
        self._since, self._is_corrected = 0, False
        return ReviewTrigger(why=why, calls=self._calls)

    def _why(self) -> TriggerReason | None:
        if self._is_corrected:
            return "correction"
        # The agent has already saved something itself.
        if self._has_saved:
            return None
        if 0 < self._task_calls <= self._calls:
            return "task"
        return "session" if 0 < self._session_calls <= self._since else None
