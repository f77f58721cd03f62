"""Choosing in a real terminal: the wizard, the list of toolsets, the list of sessions."""

from __future__ import annotations

from pathlib import Path

from hermes.config.home import Home
from hermes.config.load import load
from hermes.testing.server import ScriptedServer
from tests.surfaces.cli.chat.conftest import NewPane


def test_the_wizard_keeps_what_was_answered_when_somebody_leaves(
    new_pane: NewPane, tmp_path: Path
) -> None:
    pane = new_pane(settings="# mine\nagent: {max_turns: 7}\n")
    pane.hermes("setup agent; echo left with $?", ready=False)
    pane.wait_for("agent.max_turns [7]:")
    pane.say("many")
    pane.wait_for("agent.max_turns must be", "nothing was written")
    pane.say("12")
    pane.wait_for("approvals.mode [manual]:")
    pane.keys("Enter")
    pane.wait_for("display.tool_progress [all]:")
    pane.keys("C-c")
    pane.wait_for("left with 130")
    home = tmp_path / "home"
    assert "# mine" in (home / "config.yaml").read_text()
    assert "max_turns: 12" in (home / "config.yaml").read_text()
    (backup,) = home.glob("config.yaml.bak.*")
    assert "max_turns: 7" in backup.read_text()


def test_the_wizard_offers_what_this_machine_has(new_pane: NewPane, tmp_path: Path) -> None:
    settings = "model: {default: old, provider: openrouter}\n"
    pages = {"/api/tags": {"models": [{"name": "qwen3:8b", "size": 5_000_000_000}]}}
    with ScriptedServer.in_thread(pages=pages) as server:
        pane = new_pane(settings=settings, columns=140)
        host = server.url.removeprefix("http://")
        pane.run(f"export HOME={tmp_path} OLLAMA_HOST={host}")
        pane.hermes("setup model; echo left with $?", ready=False)
        pane.wait_for("Which model?", "qwen3:8b", "tokens/s", "Another …")
        pane.type("qwen3:8b")
        pane.wait_for("Which model?  qwen3:8b")
        pane.keys("Enter")
        pane.wait_for("qwen3:8b (custom) is the default now.", "left with 0")
    saved = load(Home(tmp_path / "home"), env={}).settings.model
    assert (saved.default, saved.provider) == ("qwen3:8b", "custom")
    assert saved.base_url == f"{server.url}/v1"


def test_enter_switches_a_toolset(new_pane: NewPane, tmp_path: Path) -> None:
    pane = new_pane()
    pane.hermes("tools; echo done", ready=False)
    pane.wait_for("✓ clarify", "Enter enables")
    pane.type("todo")
    pane.wait_for("Toolsets (Enter enables or disables)  todo")
    pane.keys("Enter")
    pane.wait(lambda text: "todo: off" in text and "❯   todo" in text)
    pane.keys("Escape")
    pane.wait_for("done")
    assert "disabled_toolsets: [todo]" in (tmp_path / "home" / "config.yaml").read_text()


def test_a_session_is_picked_and_goes_on(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes("-z 'calculate 6*7'; echo one", ready=False)
    pane.wait_for("6*7 = 42", "one\n")
    pane.run("clear")
    pane.hermes("sessions browse", ready=False)
    pane.wait_for("Resume", "calculate 6*7")
    pane.keys("Enter")
    pane.wait_for("6*7 = 42", "❯")
    pane.wait_idle()
    pane.say("/quit")
    pane.wait_for("--resume")
