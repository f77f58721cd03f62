"""Hooks at a terminal: a person allows them once, and hears of them in new sessions too."""

from __future__ import annotations

from pathlib import Path

from hermes.testing.steps import says
from tests.hooks.programs import Programs
from tests.surfaces.cli.chat.conftest import NewPane

EVENTS = (
    "on_session_start",
    "post_llm_call",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
)


def test_a_person_allows_a_program_once_and_slash_commands_fire_hooks(
    new_pane: NewPane, tmp_path: Path
) -> None:
    programs = Programs(tmp_path / "hooks", {event: {} for event in EVENTS})
    settings = programs.settings.replace("hooks_auto_accept: true\n", "")
    pane = new_pane(says("One."), says("Two."), settings=settings, columns=200)
    pane.hermes(ready=False)
    for event in EVENTS:
        pane.wait_for(f"on the hook {event}:")
        pane.say("n" if event == "post_llm_call" else "y")
    pane.wait(lambda text: "❯" in text.rpartition("[y/N]")[2])
    pane.wait_for("on_session_start")
    pane.say("first")
    pane.wait_for("One.")
    pane.wait_idle()
    pane.say("/new")
    pane.wait_for("This is a new session.")
    pane.say("second")
    pane.wait_for("Two.")
    pane.wait_idle()
    pane.keys("C-d")
    pane.wait(lambda text: text.rstrip().endswith("$"))
    assert programs.ran == [
        "on_session_start",
        "on_session_end",
        "on_session_finalize",
        "on_session_reset",
        "on_session_start",
        "on_session_end",
        "on_session_finalize",
    ]
