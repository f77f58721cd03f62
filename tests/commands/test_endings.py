"""How a turn ended, in one sentence."""

from __future__ import annotations

import pytest

from hermes.commands.formatting import explain_ending, is_error
from hermes.core.events import EndReason, TurnEnded
from hermes.core.messages import Usage


def ended(reason: EndReason, detail: str = "", error: str = "") -> TurnEnded:
    return TurnEnded(reason=reason, usage=Usage(), detail=detail, error=error)


def test_a_good_end_needs_no_words() -> None:
    assert explain_ending(ended("done", "text_response(done)"), answered=True) == ""


@pytest.mark.parametrize(
    ("end", "part"),
    [
        (ended("done", "text_response(done)"), "empty answer"),
        (ended("done", "text_response(length)"), "length limit"),
        (ended("interrupted"), "Interrupted."),
        (ended("budget", "max_iterations_reached(90/90)"), "after 90 model calls"),
        (ended("guardrail", "read_file failed 8 times in a row"), "read_file failed 8 times"),
        (ended("partial", "invalid_tool_calls"), "cannot be run"),
        (ended("failed", "auth", "The key was refused."), "The key was refused."),
    ],
)
def test_any_other_end_is_explained(end: TurnEnded, part: str) -> None:
    assert part in explain_ending(end, answered=False)


def test_only_faults_are_errors() -> None:
    assert [is_error(ended(r)) for r in ("failed", "interrupted", "budget")] == [True, False, False]
