"""A disk that fills up during a turn: the chat says so and goes on when there is space."""

from __future__ import annotations

from pathlib import Path

from hermes.testing.steps import calls, says
from tests.durability.mounts import mounted
from tests.surfaces.cli.chat.conftest import NewPane


def test_a_chat_tells_that_the_disk_is_full_and_goes_on(tmp_path: Path, new_pane: NewPane) -> None:
    with mounted(tmp_path / "disk", "size=6m") as disk:
        (disk / "home").mkdir()
        (tmp_path / "home").symlink_to(disk / "home")
        fills = calls("terminal", command=f"cat /dev/zero > {disk}/filler; seq 9000")
        pane = new_pane(fills, says("As I was saying."), says("You said: two"))
        pane.hermes("--yolo")
        pane.say("one")
        pane.wait_for("The session has stopped: ", "free some space")
        (disk / "filler").unlink()
        pane.say("two")
        pane.wait_for("As I was saying.", "You said: two")
