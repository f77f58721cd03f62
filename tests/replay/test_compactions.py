"""Sessions that were shortened on the way are played again byte for byte, taped or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.app.replay import replay
from hermes.codec.values import replace
from hermes.core.commands import Compact
from hermes.core.events import Compacted
from hermes.replay.collection import collect_recording
from hermes.replay.recording import Recording
from hermes.testing.request import Request
from hermes.testing.steps import Rule, Step, calls, fails, overflows, says
from tests.context.ground import is_for_summary
from tests.replay.story_players import Story, killed, talk, told

SMALL = "model: {context_length: 8192}\n"
LISTING = "for i in $(seq 1 {}); do echo line $i of a listing that goes on and on; done"


def working(rounds: int, *, notes: str = "Goal: lists.") -> Rule[Request]:
    """Lists something again and again until it has seen enough."""
    made = [0]

    def model(request: Request) -> Step:
        if is_for_summary(request):
            return says(notes) if notes else fails(400)
        if request.last_text.startswith("And") or made[0] >= rounds:
            return says(f"Done after {made[0]}.")
        made[0] += 1
        return calls("terminal", command=LISTING.format(80 + made[0]))

    return model


def too_long() -> Rule[Request]:
    """The window is smaller than anybody thought."""
    said = [0]

    def model(request: Request) -> Step:
        if is_for_summary(request):
            return says("Goal: talk.")
        said[0] += 1
        return overflows(30_000) if said[0] == 4 else says("Well, " * 800)

    return model


TALK = ("One. Never forget this.", "Two.", "Three.", "Four.", "Five.")


def stories() -> dict[str, Story]:
    """Their models remember what they did, so each test has its own."""
    found = (
        Story("pruned", working(12), talk("Go."), "chat", SMALL),
        Story("summarised", working(24), talk("Go.", "And then?"), "messages", SMALL),
        Story("without a summary", working(24, notes=""), talk("Go."), "responses", SMALL),
        Story("asked for", working(3), talk("Go.", "And?", Compact(topic="lists"), "And now?")),
        Story("too much for the server", too_long(), talk(*TALK), "chat"),
        Story("killed", working(12), killed("compaction.made:2"), "chat", SMALL),
    )
    return {story.name: story for story in found}


# What was not killed is played from its records too.
FROM_RECORDS = ("summarised", "without a summary", "asked for", "too much for the server")


@pytest.mark.parametrize("name", stories())
async def test_a_session_with_compactions_is_played_again(name: str, tmp_path: Path) -> None:
    recording = await _recorded(stories()[name], tmp_path)
    report = await replay(recording)
    assert report.divergence is None
    assert (report.hashes, report.words) == ("same", ())
    assert report.requests == sum(len(tape.exchanges) for tape in recording.tapes)
    if name in FROM_RECORDS:
        report = await replay(replace(recording, tapes=()))
        assert report.divergence is None
        assert report.hashes == "same"


async def _recorded(story: Story, root: Path) -> Recording:
    async with told(story, root) as (stage, session_id), stage.app(story.wire) as app:
        recording = await collect_recording(app.context, app.journal, session_id)
    made = [line.event for line in recording.lines if isinstance(line.event, Compacted)]
    assert made, "nothing was shortened"
    if story.name in ("summarised", "asked for"):
        assert any(each.summary for each in made)
    return recording
