"""Sessions that hooks had a say in, killed and resumed, and played again without the hooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.app.replay import replay
from hermes.core.events import HookAnswered, ReplyAdded, ToolFinished
from hermes.replay.collection import collect_recording
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, calls_many, says
from hermes.testing.wires.table import WireName
from tests.hooks.programs import Programs
from tests.replay.story_players import Play, Story, answering, killed, talk, told

EFFECT = calls("terminal", command="echo y >> effects; echo done")
SEVERAL = calls_many(
    ("terminal", {"command": "touch a"}),
    ("read_file", {"path": "a.txt"}),
    ("terminal", {"command": "ls"}),
)


def until_done(request: Request) -> Step:
    """A model that makes the call until it has a result, or is told to go on."""
    done = request.results or "Go on." in request.last_text
    return says("Going on.") if done else EFFECT


async def tell(story: Story, root: Path) -> list[str]:
    """Tell it, and play it again while the hooks are gone. The names of events, in order."""
    programs = Programs(root / "hooks")
    story = story._replace(settings=programs.settings)
    async with told(story, root / "stage") as (stage, session_id), stage.app() as app:
        recording = await collect_recording(app.context, app.journal, session_id)
        ran = programs.ran
        programs.remove()
        report = await replay(recording)
        effects = stage.work / "effects"
        done = effects.read_text() if effects.exists() else ""
    assert report.divergence is None
    assert (report.played, report.hashes) == (len(recording.lines), "same")
    assert programs.ran == ran
    assert "y" not in done
    return [line.kind for line in recording.lines]


@pytest.mark.parametrize(
    "wire",
    [
        "chat",
        pytest.param("messages", marks=pytest.mark.slow),
        pytest.param("responses", marks=pytest.mark.slow),
    ],
)
async def test_a_session_with_every_hook_that_changes_is_played_byte_for_byte(
    tmp_path: Path, wire: WireName
) -> None:
    story = Story("all", [SEVERAL, says("One."), EFFECT, says("Two.")], talk("Go.", "And?"), wire)
    kinds = await tell(story, tmp_path)
    assert kinds.count("hook_answered") == 2 + 4 + 2


async def test_a_question_that_a_hook_wants_is_played_again(tmp_path: Path) -> None:
    programs = Programs(tmp_path / "hooks", {"pre_tool_call": {"action": "approve"}})
    play = talk("Go.", meanwhile=answering("once", "deny"), attended=True, asks=True)
    steps = [EFFECT, calls("terminal", command="ls"), says("Well.")]
    story = Story("asks", steps, play, settings=programs.settings)
    async with told(story, tmp_path / "stage") as (stage, session_id), stage.app() as app:
        recording = await collect_recording(app.context, app.journal, session_id)
    programs.remove()
    report = await replay(recording)
    assert (report.divergence, report.hashes) == (None, "same")
    assert [line.kind for line in recording.lines].count("approval_asked") == 2


# Around the call itself in every run, elsewhere in the long ones.
KILLS = ("hook.answered:1", "tool.started:1", "tool.effect:1")
MORE_KILLS = (
    "turn.started:1",
    "model.called:1",
    "reply.received:1",
    "tool.finished:1",
    "model.called:2",
    "reply.received:2",
    "turn.ending:1",
)


@pytest.mark.parametrize(
    "point", [*KILLS, *(pytest.param(point, marks=pytest.mark.slow) for point in MORE_KILLS)]
)
async def test_wherever_a_process_dies_a_hooked_call_is_made_once_at_most(
    tmp_path: Path, point: str
) -> None:
    programs = Programs(tmp_path / "hooks")
    story = Story("dies", until_done, killed(point), settings=programs.settings)
    async with told(story, tmp_path / "stage") as (stage, session_id), stage.app() as app:
        recording = await collect_recording(app.context, app.journal, session_id)
        programs.remove()
        report = await replay(recording)
        effects = stage.work / "effects"
        done = effects.read_text() if effects.exists() else ""
    assert done in ("", "x\n")
    assert (report.divergence, report.hashes) == (None, "same")
    events = [line.event for line in recording.lines]
    made = [event for event in events if isinstance(event, ToolFinished)]
    if point in ("tool.started:1", "tool.effect:1"):
        # It may have happened, so it is neither made nor shown to hooks again.
        assert "outcome unknown" in made[0].result.text
        assert programs_ran(events, "pre_tool_call") == 1
    replies = [event.message.text for event in events if isinstance(event, ReplyAdded)]
    assert replies[-1] == "An answer from a hook."


def programs_ran(events: Sequence[object], hook: str) -> int:
    return sum(isinstance(event, HookAnswered) and event.hook == hook for event in events)


async def test_a_turn_that_is_continued_reads_the_same_words_beside_the_person(
    tmp_path: Path,
) -> None:
    programs = Programs(tmp_path / "hooks")
    play: Play = killed("tool.finished:1", then="Later.")
    story = Story("dies", until_done, play, settings=programs.settings)
    async with told(story, tmp_path / "stage") as (stage, _):
        asked: list[Any] = [request.body["messages"] for request in stage.server.requests]
    first, resumed, later, _ = asked
    assert first == resumed[: len(first)]
    assert first[-1]["content"] == "Do it.\n\nIt is Friday."
    assert [said["content"] for said in later if said["role"] == "user"] == [
        "Do it.",
        "Later.\n\nIt is Friday.",
    ]
    assert programs.ran.count("pre_llm_call") == 2
