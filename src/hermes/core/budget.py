"""The step budget of a turn and of the sub-sessions that it starts."""

from __future__ import annotations


class StepBudget:
    """Counts model calls. A child's steps also count against its parent."""

    def __init__(self, total: int, parent: StepBudget | None = None) -> None:
        self.total = total
        self.used = 0
        self._parent = parent
        self._hinted = 0

    @property
    def remaining(self) -> int:
        own = max(0, self.total - self.used)
        return own if self._parent is None else min(own, self._parent.remaining)

    def consume(self) -> bool:
        """Take one step. False when none is left, here or in a parent."""
        if self.remaining == 0:
            return False
        self.used += 1
        if self._parent is not None:
            self._parent.consume()
        return True

    def refund(self) -> None:
        """Give back a step that did no work of its own."""
        self.used = max(0, self.used - 1)
        if self._parent is not None:
            self._parent.refund()

    def hint(self) -> str:
        """A note for the model, once at 70 % and once at 90 % of the steps."""
        share = self.used * 100 // self.total if self.total else 100
        level = 90 if share >= 90 else 70 if share >= 70 else 0
        if level <= self._hinted:
            return ""
        self._hinted = level
        count = f"{self.used} of {self.total} steps of this turn are used"
        if level == 90:
            return f"[{count}: answer now; no more tools unless vital.]"
        return f"[{count}: start wrapping up.]"
