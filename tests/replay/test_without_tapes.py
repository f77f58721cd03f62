"""Sessions that were never taped are played from their records, whoever died in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.replay import replay
from hermes.codec.values import replace
from hermes.replay.collection import collect_recording
from tests.replay.stories import stories
from tests.replay.story_players import Story, told

# What the settings say now decides where no tape tells what they said then.
STORIES = [story for story in stories() if "approv" not in story.name]
QUICK = {"tools and words", "a stop in the middle of a stream", "a death in a model call"}


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(story, id=str(story), marks=() if story.name in QUICK else pytest.mark.slow)
        for story in STORIES
    ],
)
async def test_a_session_is_played_from_its_records(story: Story, tmp_path: Path) -> None:
    async with told(story, tmp_path) as (stage, session_id), stage.app(story.wire) as app:
        recording = replace(await collect_recording(app.context, app.journal, session_id), tapes=())
    report = await replay(recording)
    assert report.divergence is None
    assert (report.hashes, report.requests) == ("same", 0)
