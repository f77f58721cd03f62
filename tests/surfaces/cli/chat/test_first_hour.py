"""Somebody's first hour at the terminal, from an empty home to a model that asks before it acts."""

from __future__ import annotations

from pathlib import Path

from hermes.testing.faults import paced
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.surfaces.cli.chat.conftest import NewPane, env_of, make_home
from tests.surfaces.cli.chat.pane import HERMES, Pane

LONG = paced(
    says("The first part. " + "More and more words. " * 200), chunk=20, between_seconds=0.05
)
TABLE = "Done.\n\n| file | lines |\n|---|---|\n| notes.txt | 1 |\n"


def test_without_a_model_every_step_is_true_and_leads_on(new_pane: NewPane, project: Path) -> None:
    pane = new_pane(columns=110, rows=45)
    pane.run(f"{HERMES} -m nosuch -z hi; echo exit=$?")
    pane.wait_for("error: ", "'nosuch'", "exit=1")
    pane.run("clear")
    pane.run(f"{HERMES} extras list")
    pane.wait_for("local", "GGUF")
    pane.run("clear")
    pane.run(f"{HERMES} setup --detect --json; echo exit=$?")
    pane.wait_for('"advice"', "exit=0")
    pane.run("clear")
    pane.hermes()
    pane.wait_for("Tools", "Skills", "Tip")
    pane.say("create a file plan.txt that says call Ada")
    pane.wait_for("Wrote plan.txt")
    pane.wait_idle()
    assert (project / "plan.txt").read_text().strip() == "call Ada"
    pane.say("write me a poem about the sea")
    pane.wait_for("only do a fixed list of requests", "hermes setup")
    pane.wait_idle()
    pane.say("/model nosuch")
    pane.wait(lambda text: text.count("nosuch") > 1)
    pane.wait_for("⚕ offline-assistant │")
    pane.say("/help undo")
    pane.wait(lambda text: text.count("/undo") > 0 and text.rstrip().endswith("❯"))
    assert "/personality" not in pane.screen().rpartition("/help undo")[2]


def test_with_a_model_text_stays_and_every_effect_can_be_judged(
    tmp_path: Path, project: Path
) -> None:
    steps: list[Step] = [
        LONG,
        calls("write_file", path="../outside.txt", content="one\ntwo\n"),
        calls("write_file", path="inside.txt", content="inside\n"),
        says(TABLE),
    ]
    requests: list[Request] = []

    def next_step(request: Request) -> Step:
        requests.append(request)
        return steps.pop(0)

    home = tmp_path / "home"
    make_home(home)
    with ScriptedServer.in_thread(next_step) as server:
        pane = Pane(project, env_of(home, server), columns=100, rows=40)
        try:
            pane.hermes()
            pane.say("tell me everything")
            pane.wait_for("The first part.")
            pane.keys("C-c")
            pane.wait_for("Interrupted.")
            pane.wait_idle()
            pane.say("now write the files")
            shown = pane.wait_for("→ deny)")
            # The whole content and that the file is new are in view before anything is written.
            assert "new file" in shown
            assert "one" in shown
            assert not (tmp_path / "outside.txt").exists()
            pane.keys("Tab")
            pane.say("keep it in the project")
            pane.wait_for("notes.txt │ 1")
            pane.wait_idle()
        finally:
            pane.close()
    assert (project / "inside.txt").read_text() == "inside\n"
    assert not (tmp_path / "outside.txt").exists()
    assert "The first part." in str(requests[1].body)
    assert "keep it in the project" in str(requests[2].body)
