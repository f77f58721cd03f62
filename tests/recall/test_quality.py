"""Questions about long dialogues, asked as they are, find what they are about."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

from bench.recall import found_in, parts, summed
from tests.recall import chats, dialogues, friends, lives
from tests.recall.dialogues import KINDS, Dialogue, Question


@pytest.mark.parametrize(
    ("corpus", "count", "asked"),
    [
        (dialogues.dialogues(), 10, 300),
        (chats.chats(), 10, 300),
        (lives.lives(), 10, 300),
        (friends.friends(), 4, 120),
    ],
)
def test_the_dialogues_are_long_and_their_questions_have_evidence(
    corpus: Sequence[Dialogue], count: int, asked: int
) -> None:
    assert len(corpus) >= count
    assert all(len(dialogue.sessions) >= 20 for dialogue in corpus)
    questions = [question for dialogue in corpus for question in dialogue.questions]
    assert len(questions) >= asked
    assert {question.kind for question in questions} >= set(KINDS.values()) - {"adversarial"}
    assert all(question.evidence for question in questions)


def test_nothing_is_both_tuned_and_held_out() -> None:
    for room in (dialogues, chats, friends, lives):
        assert room.held_out()
        assert not set(room.tuned()) & set(room.held_out())


@pytest.mark.parametrize(
    ("corpus", "named", "five", "shown"),
    [
        ("chats", True, 84.0, 90.0),
        pytest.param("chats", False, 82.0, 84.0, marks=pytest.mark.slow),
        pytest.param("dialogues", True, 70.0, 88.0, marks=pytest.mark.slow),
        ("dialogues", False, 58.0, 62.0),
        ("friends", True, 64.0, 88.0),
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


async def test_a_slip_in_a_name_costs_little() -> None:
    """One letter is wrong in each name of those who speak."""
    (part,) = (one for one in parts() if (one.corpus, one.label) == ("friends", "tuned"))
    ((stored, asked),) = part.stores
    speakers = {name for dialogue in asked for name in dialogue.speakers}
    pattern = re.compile(rf"\b({'|'.join(sorted(speakers))})\b")

    def slipped(question: Question) -> Question:
        chance = random.Random(question.text)
        return question._replace(
            text=pattern.sub(lambda name: _slip(name[0], chance), question.text)
        )

    wrong = [one._replace(questions=tuple(map(slipped, one.questions))) for one in asked]
    found = summed((await found_in(part._replace(stores=[(stored, wrong)]), named=True)).ours)
    assert found["all"]["recall_at_5"] >= 66
    assert found["all"]["evidence_shown"] >= 88


def _slip(name: str, chance: random.Random) -> str:
    at = chance.randrange(2, len(name))
    return name[:at] + "q" + name[at + 1 :]
