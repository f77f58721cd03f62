"""`/reload`: the chat follows what has changed outside, and the conversation goes on."""

from __future__ import annotations

from pathlib import Path

from tests.surfaces.cli.chat.conftest import NewPane


def test_a_chat_follows_settings_that_have_changed_meanwhile(
    new_pane: NewPane, tmp_path: Path
) -> None:
    pane = new_pane()
    pane.hermes()
    pane.say("what is 1 + 1")
    pane.wait_for("1 + 1 = 2")
    pane.wait_idle()
    (tmp_path / "home" / "config.yaml").write_text(
        "model: {provider: offline}\nquick_commands: {hey: {command: echo from outside}}\n"
    )
    pane.say("/hey")
    pane.wait_for("There is no command /hey")
    pane.say("/reload")
    pane.say("/hey")
    pane.wait_for("\nfrom outside")
    pane.say("/history")
    pane.wait(lambda text: text.count("1 + 1 = 2") == 2)
    pane.say("/quit")
    pane.wait_for("Resume this session with:")
    assert pane.everything().count("1 + 1 = 2") == 2, "once as an answer, once in the history"
