"""Recorded sessions are played again without their model, and nothing is different."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.replay.gathering import gather
from hermes.app.replay.replay import replay
from tests.app.replay.stories import stories
from tests.app.replay.telling import Story, told

STORIES = stories()
QUICK = 13


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(story, id=str(story), marks=() if number < QUICK else pytest.mark.slow)
        for number, story in enumerate(STORIES)
    ],
)
async def test_a_recorded_session_is_played_byte_for_byte(story: Story, tmp_path: Path) -> None:
    async with told(story, tmp_path) as (stage, session_id), stage.app() as app:
        recording = await gather(app, session_id)
    report = await replay(recording)
    assert report.divergence is None
    assert (report.played, report.hashes, report.words) == (len(recording.lines), "same", ())
    assert report.requests == sum(len(tape.exchanges) for tape in recording.tapes)


def test_there_are_enough_of_them() -> None:
    assert len(STORIES) >= 50
    assert len({str(story) for story in STORIES}) == len(STORIES)
    assert {story.wire for story in STORIES[:QUICK]} == {"chat", "messages", "responses"}
