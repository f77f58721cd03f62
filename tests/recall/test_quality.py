"""Questions about long dialogues, asked as they are, find what they are about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.recall import Ours, Plain, lines, summed
from tests.recall import chats, dialogues
from tests.recall.dialogues import KINDS, Dialogue


@pytest.mark.parametrize("corpus", [dialogues.dialogues(), chats.chats()])
def test_the_dialogues_are_long_and_their_questions_have_evidence(
    corpus: Sequence[Dialogue],
) -> None:
    assert len(corpus) >= 10
    assert all(len(dialogue.sessions) >= 20 for dialogue in corpus)
    questions = [question for dialogue in corpus for question in dialogue.questions]
    assert len(questions) >= 300
    assert {question.kind for question in questions} == set(KINDS.values())
    assert all(question.evidence for question in questions)


def test_nothing_is_both_tuned_and_held_out() -> None:
    for room in (dialogues, chats):
        assert room.held_out()
        assert not set(room.tuned()) & set(room.held_out())


@pytest.mark.parametrize(
    ("stored", "asked", "named", "five", "shown"),
    [
        (chats.chats(), chats.held_out(), True, 84.0, 90.0),
        (chats.chats(), chats.held_out(), False, 82.0, 84.0),
        (dialogues.dialogues(), dialogues.held_out(), True, 66.0, 80.0),
        (dialogues.dialogues(), dialogues.held_out(), False, 55.0, 60.0),
    ],
    ids=["chats", "chats without names", "dialogues", "dialogues without names"],
)
async def test_sessions_and_evidence_are_found(
    tmp_path: Path,
    stored: Sequence[Dialogue],
    asked: Sequence[Dialogue],
    named: bool,
    five: float,
    shown: float,
) -> None:
    said = list(lines(stored, named=named))
    questions = [question for dialogue in asked for question in dialogue.questions]
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
