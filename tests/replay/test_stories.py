"""Recorded sessions are played again without their model, and nothing is different."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.replay import replay
from hermes.codec.values import replace
from hermes.core.events import CallSettled
from hermes.replay.collection import collect_recording
from hermes.replay.inputs import side_work
from tests.replay.stories import stories
from tests.replay.story_players import Story, told

STORIES = stories()
QUICK = 15


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(story, id=str(story), marks=() if number < QUICK else pytest.mark.slow)
        for number, story in enumerate(STORIES)
    ],
)
async def test_a_recorded_session_is_played_byte_for_byte(story: Story, tmp_path: Path) -> None:
    async with told(story, tmp_path) as (stage, session_id), stage.app() as app:
        recording = await collect_recording(app.context, app.journal, session_id)
    report = await replay(recording)
    assert report.divergence is None
    assert (report.played, report.hashes, report.words) == (len(recording.lines), "same", ())
    assert report.requests == sum(len(tape.exchanges) for tape in recording.tapes)


async def test_of_which_turn_side_work_was_written_down_is_no_difference(tmp_path: Path) -> None:
    """The name of a session is found while the next turn begins, or just before."""
    (story,) = (each for each in STORIES[:QUICK] if "background process" in str(each))
    async with told(story, tmp_path) as (stage, session_id), stage.app() as app:
        recording = await collect_recording(app.context, app.journal, session_id)
    events = [line.event for line in recording.lines]
    side = side_work(events)
    assert any(isinstance(events[place], CallSettled) for place in side)
    for turn_id in ("", "turn_elsewhere"):
        moved = (
            replace(line, turn_id=turn_id) if place in side else line
            for place, line in enumerate(recording.lines)
        )
        report = await replay(replace(recording, lines=tuple(moved)))
        assert report.divergence is None
        assert report.played == len(recording.lines)


def test_there_are_enough_of_them() -> None:
    assert len(STORIES) >= 50
    assert len({str(story) for story in STORIES}) == len(STORIES)
    assert {story.wire for story in STORIES[:QUICK]} == {"chat", "messages", "responses"}
