from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.messages import Text, joined_text
from hermes.core.tools import ToolOutput
from hermes.tools.clarify import clarify

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner


async def test_the_answer_of_the_person_reaches_the_model(runner: ToolRunner) -> None:
    runner.answer = "the red one"
    output = await runner.run(clarify, question=" Which? ", choices=["red", " blue", "red", ""])
    assert runner.asked == [("Which?", ("red", "blue"))]
    assert output == ToolOutput(
        parts=(Text(text="The user answered: the red one"),),
        details={
            "question": "Which?",
            "choices_offered": ["red", "blue"],
            "user_response": "the red one",
        },
        origin="user",
    )


async def test_without_an_answer_the_model_decides_itself(runner: ToolRunner) -> None:
    output = await runner.run(clarify, question="Which?")
    assert runner.asked == [("Which?", ())]
    assert not output.failed
    assert "Decide yourself" in joined_text(output.parts)
    assert output.details["user_response"] is None


async def test_more_than_four_choices_or_no_question_are_not_put(runner: ToolRunner) -> None:
    assert (await runner.run(clarify, question="Which?", choices=list("abcde"))).failed
    assert (await runner.run(clarify, question=" ")).failed
    assert runner.asked == []


def test_it_waits_for_a_person_and_may_be_asked_again() -> None:
    assert (clarify.interactive, clarify.repeat) == (True, "safe")
