"""One story, told and gathered, for tests that look at a single recording."""

from __future__ import annotations

from pathlib import Path

from hermes.replay.collection import collect_recording
from hermes.replay.recording import Recording
from hermes.testing.steps import Step
from hermes.testing.wires.table import WireName
from tests.replay.story_players import Play, Story, talk, told


async def record(
    root: Path,
    *steps: Step,
    play: Play | None = None,
    wire: WireName = "chat",
    settings: str = "",
) -> Recording:
    """What lies in the home after a model has done these steps."""
    story = Story("one", steps, play or talk("Go."), wire, settings)
    async with told(story, root) as (stage, session_id), stage.app(wire) as app:
        return await collect_recording(app.context, app.journal, session_id)
