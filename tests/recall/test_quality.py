"""Questions about long dialogues, asked as they are, find what they are about."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.recall import found_in, parts, summed
from tests.recall import chats, dialogues, lives
from tests.recall.dialogues import KINDS, Dialogue


@pytest.mark.parametrize("corpus", [dialogues.dialogues(), chats.chats(), lives.lives()])
def test_the_dialogues_are_long_and_their_questions_have_evidence(
    corpus: Sequence[Dialogue],
) -> None:
    assert len(corpus) >= 10
    assert all(len(dialogue.sessions) >= 20 for dialogue in corpus)
    questions = [question for dialogue in corpus for question in dialogue.questions]
    assert len(questions) >= 300
    assert {question.kind for question in questions} >= set(KINDS.values()) - {"adversarial"}
    assert all(question.evidence for question in questions)


def test_nothing_is_both_tuned_and_held_out() -> None:
    for room in (dialogues, chats, lives):
        assert room.held_out()
        assert not set(room.tuned()) & set(room.held_out())


@pytest.mark.parametrize(
    ("corpus", "named", "five", "shown"),
    [
        ("chats", True, 84.0, 90.0),
        ("chats", False, 82.0, 84.0),
        ("dialogues", True, 70.0, 88.0),
        ("dialogues", False, 58.0, 62.0),
        ("lives", True, 83.0, 88.0),
        pytest.param("lives", False, 82.0, 81.0, marks=pytest.mark.slow),
    ],
)
async def test_sessions_and_evidence_are_found(
    corpus: str, named: bool, five: float, shown: float
) -> None:
    (part,) = (one for one in parts() if (one.corpus, one.label) == (corpus, "held-out"))
    answers = await found_in(part, named=named)
    found, plain = summed(answers.ours), summed(answers.plain)
    assert found["all"]["recall_at_5"] >= max(five, plain["all"]["recall_at_5"] + 5)
    assert found["all"]["evidence_shown"] >= max(shown, plain["all"]["evidence_shown"] + 8)
    assert found["all"]["recall_at_1"] >= plain["all"]["recall_at_1"] + 8
    assert max(answer.size for _, answer in answers.ours) <= 6_500
