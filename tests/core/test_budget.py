"""Steps are counted here and above."""

from __future__ import annotations

from hermes.core.caps import StepBudget


def test_hints_come_once_at_seventy_and_once_at_ninety_percent() -> None:
    budget = StepBudget(10)
    hints = []
    while budget.consume():
        hints.append(budget.hint()[:8])
    assert hints == ["", "", "", "", "", "", "[7 of 10", "", "[9 of 10", ""]


def test_a_child_also_uses_up_its_parent() -> None:
    parent = StepBudget(5)
    one, other = StepBudget(3, parent), StepBudget(50, parent)
    assert [one.consume() for _ in range(4)] == [True, True, True, False]
    assert [other.consume() for _ in range(3)] == [True, True, False]
    assert (parent.used, parent.remaining, other.remaining) == (5, 0, 0)


def test_a_refund_gives_the_step_back_everywhere() -> None:
    parent = StepBudget(2)
    child = StepBudget(2, parent)
    child.consume()
    child.refund()
    assert (child.used, parent.used) == (0, 0)
