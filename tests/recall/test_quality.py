"""Questions about long dialogues, asked as they are, find what they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.recall import Ours, Plain, lines, summed
from tests.recall.dialogues import KINDS, dialogues, held_out, tuned


def test_the_dialogues_are_long_and_their_questions_have_evidence() -> None:
    assert len(dialogues()) >= 10
    assert all(len(dialogue.sessions) >= 20 for dialogue in dialogues())
    questions = [question for dialogue in dialogues() for question in dialogue.questions]
    assert len(questions) >= 300
    assert {question.kind for question in questions} == set(KINDS.values())
    assert all(question.evidence for question in questions)
    assert len(held_out()) + len(tuned()) == len(dialogues())


@pytest.mark.parametrize(("named", "five", "shown"), [(True, 60.0, 70.0), (False, 55.0, 60.0)])
async def test_sessions_and_evidence_are_found(
    tmp_path: Path, named: bool, five: float, shown: float
) -> None:
    said = list(lines(dialogues(), named=named))
    questions = [question for dialogue in held_out() for question in dialogue.questions]
    ours = Ours(tmp_path)
    await ours.take(said)
    answers = {question.text: await ours.ask(question.text) for question in questions}
    await ours.close()
    found = summed(questions, lambda one: answers[one.text])
    plain = summed(questions, Plain(said).asked)
    assert found["all"]["recall_at_5"] >= max(five, plain["all"]["recall_at_5"] + 5)
    assert found["all"]["evidence_shown"] >= max(shown, plain["all"]["evidence_shown"] + 8)
    assert found["all"]["recall_at_1"] >= plain["all"]["recall_at_1"] + 8
    assert max(answer.size for answer in answers.values()) <= 6_500
