"""A long project in a small window: rules hold, requests are verbatim, nothing gets lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.messages import AssistantMessage
from hermes.core.session import Session
from hermes.testing.request import Request
from tests.context.ground import Stage, compactions, say, stage
from tests.long.project import FILES, Fact, Model, User, facts

WINDOW = 16_384
# The vendors' own types are slow to ask about requests of this size, and judge them elsewhere.
pytestmark = pytest.mark.unjudged


@pytest.mark.parametrize(
    ("turns", "restarts"), [(75, 2), pytest.param(400, 8, marks=pytest.mark.slow)]
)
async def test_a_long_project_keeps_its_rules_and_finds_its_facts(
    tmp_path: Path, turns: int, restarts: int
) -> None:
    model, planted = Model(), facts(40)
    async with stage(tmp_path, model, window=WINDOW, notes=_notes) as ground:
        session_id = await _work(ground, User(turns, planted), restarts)
        async with ground.session(session_id) as (app, session):
            made = compactions(await app.journal.read(session_id))
            lost = [fact for fact in planted if not await _found(ground, session, fact)]
        assert len(made) >= (10 if turns >= 400 else 3)
        assert any(each.summary for each in made)
        assert lost == []
        assert set(model.reads.values()) == {1}
        assert len(model.reads) == FILES
        assert ground.server.violations == []


async def test_it_goes_on_without_anybody_to_summarise(tmp_path: Path) -> None:
    model, planted = Model(), facts(24)
    async with stage(tmp_path, model, window=WINDOW, notes=None) as ground:
        session_id = await _work(ground, User(50, planted), 1)
        async with ground.session(session_id) as (app, session):
            made = compactions(await app.journal.read(session_id))
            lost = [fact for fact in planted if not await _found(ground, session, fact)]
        assert made and not any(each.summary for each in made)
        assert lost == []
        assert set(model.reads.values()) == {1}


async def _work(ground: Stage, user: User, restarts: int) -> str:
    """The whole project, with the program started anew in between."""
    for number in range(FILES):
        ground.file(f"src/part{number}.txt", lines=60)
    session_id = ""
    part = -(-user.turns // (restarts + 1))
    for first in range(0, user.turns, part):
        async with ground.session(session_id) as (_, session):
            for turn in range(first, min(first + part, user.turns)):
                words, before = user.words(turn), len(ground.chats)
                ended = await say(session, words)
                assert (ended.reason, ended.error) == ("done", "")
                _check(ground.chats[before:], words, user, turn)
            session_id = session.id
    return session_id


def _check(requests: list[Request], words: str, user: User, turn: int) -> None:
    """Every request of the turn has the request and all rules so far, word for word."""
    rules = [
        fact.words
        for at, fact in user.plan.items()
        if at <= turn and fact.kind in ("constraint", "rejected")
    ]
    for request in requests:
        text = "\n".join(said.text for said in request.messages)
        assert words in text
        assert [rule for rule in rules if rule not in text] == []


async def _found(ground: Stage, session: Session, fact: Fact) -> bool:
    """Whether one recall brings it back, if it is not in the very next request."""
    await say(session, f"Recall: {session.id} {fact.question}")
    newest = ground.chats[-2:][0].messages
    shown = "\n".join(said.text for said in newest if not said.text.startswith("Recall:"))
    answer = session.transcript.messages[-1]
    assert isinstance(answer, AssistantMessage)
    return fact.answer in shown or fact.answer in answer.text


def _notes(request: Request) -> str:
    """What a hasty model writes: it forgets nearly everything."""
    return f"Goal: the project.\nCompleted Actions: many steps ({request.n})."
