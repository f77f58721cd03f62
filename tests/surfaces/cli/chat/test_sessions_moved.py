"""From session to session: commands, coming back, crashes and closed terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from hermes.testing.faults import hangs
from hermes.testing.steps import calls, says
from tests.surfaces.cli.chat.conftest import NewPane, Talk
from tests.surfaces.cli.chat.pane import HERMES, Pane, steady


def exchange(pane: Pane, said: str, answer: str) -> None:
    pane.say(said)
    pane.wait_for(answer)
    pane.wait_idle()


def leave(pane: Pane) -> None:
    pane.keys("C-d")
    pane.wait(lambda text: text.rstrip().endswith("$"))
    pane.run("clear")
    pane.wait(lambda text: text.strip() == "$")


def test_commands_about_the_session(new_pane: NewPane) -> None:
    pane = new_pane(says("One."), says("Two."), says("Two, once more."), says("Three."))
    pane.hermes()
    exchange(pane, "first", "One.")
    exchange(pane, "/title My work", "now called 'My work'")
    exchange(pane, "second", "Two.")
    exchange(pane, "/retry", "Two, once more.")
    exchange(pane, "/usage", "Context   ")
    exchange(pane, "/undo", "1 turn undone, from “second”.")
    assert pane.wait_idle().rstrip().endswith("\n❯")
    exchange(pane, "/ne", "This is a new session.")
    exchange(pane, "third", "Three.")
    exchange(pane, "/resume", "Use /resume with a number")
    pane.say("/resume My work")
    pane.wait_for("Resuming My work: 2 messages")
    shown = pane.wait_idle()
    assert "❯ first\n  One.\n" in shown.rpartition("Resuming")[2]
    exchange(pane, "/usge", "Did you mean /usage?")
    pane.say("/quit")
    pane.wait_for("(My work)")


def test_commands_are_completed(chat: Talk) -> None:
    pane = chat()
    pane.type("/ti")
    pane.wait_for("title", "Show or set the title of")
    pane.keys("Tab")
    pane.wait_for("❯ /title")
    pane.say(" Named")
    pane.wait_for("now called 'Named'")


def test_a_path_is_no_command(chat: Talk) -> None:
    pane = chat(says("A file."))
    pane.say("/etc/hosts what is it?")
    pane.wait_for("A file.")


def test_the_newest_session_goes_on_with_a_recap(new_pane: NewPane) -> None:
    pane = new_pane(says("One."), says("Two."))
    pane.hermes()
    exchange(pane, "first", "One.")
    leave(pane)
    pane.hermes("-c")
    shown = pane.wait_for("Resuming", "❯ first", "One.")
    assert "2 messages, 0 tool calls" in shown
    exchange(pane, "second", "Two.")


def test_a_session_that_is_not_there_is_one_clear_line(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes("-r nosuch; echo code $?", ready=False)
    shown = pane.wait_for("code 1")
    assert "error: There is no session “nosuch”" in shown
    assert "❯" not in shown


def test_a_session_that_is_open_elsewhere_is_one_clear_line(new_pane: NewPane) -> None:
    first, second = new_pane(says("One.")), new_pane()
    first.hermes()
    exchange(first, "first", "One.")
    second.hermes("-c; echo code $?", ready=False)
    shown = second.wait_for("code 1")
    assert "error:" in shown and "Traceback" not in shown
    second.run("clear")
    second.hermes()
    second.say("/resume 1")
    second.wait(lambda text: re.search(r"❯ /resume 1\n+\S.*\n", text) is not None)
    second.wait_idle()
    exchange(second, "hello", "offline assistant")


def test_a_killed_turn_goes_on_when_it_is_resumed(new_pane: NewPane) -> None:
    pane = new_pane(calls("terminal", command="sleep 60"), says("All done."))
    pane.hermes("--yolo")
    pane.say("sleep")
    pane.wait_for("$ sleep 60", "⚕ ❯")
    os.kill(pane.pid_of("hermes"), signal.SIGKILL)
    pane.wait_for("Killed")
    pane.run("stty sane; clear")
    pane.wait(lambda text: text.strip() == "$")
    pane.hermes("--yolo -c")
    shown = steady(pane.wait_for("All done."))
    assert "Continuing the interrupted turn." in shown
    assert "┊ 💻 $         sleep 60  TIME  [outcome unknown]" in shown


def test_a_closed_terminal_ends_the_session_in_order(new_pane: NewPane) -> None:
    pane = new_pane(says("One."), hangs())
    pane.hermes()
    exchange(pane, "first", "One.")
    pane.say("second")
    pane.wait_for("thinking")
    program = pane.pid_of("hermes")
    pane.close()
    late = time.monotonic() + 60
    while Path(f"/proc/{program}").exists() and time.monotonic() < late:
        time.sleep(0.02)
    again = new_pane()
    again.hermes("-c")
    shown = again.wait_for("Resuming", "first")
    assert "Continuing" not in shown


def test_leaving_stops_what_runs(new_pane: NewPane) -> None:
    # Nobody else on this machine sleeps as long.
    sleeping = f"sleep {10**6 + time.time_ns() % 10**9}"
    pane = new_pane(calls("terminal", command=sleeping))
    pane.hermes("--yolo")
    pane.say("sleep")
    pane.wait_for(f"$ {sleeping}", "⚕ ❯")
    pane.keys("C-d")
    pane.wait_for("Resume this session with:")
    running = subprocess.run(["pgrep", "-f", sleeping], capture_output=True, text=True)
    assert running.stdout == ""


def test_a_message_from_another_process_is_shown_as_a_turn(new_pane: NewPane) -> None:
    pane = new_pane(says("One."), says("Heard."))
    pane.hermes()
    exchange(pane, "first", "One.")
    other = new_pane()
    other.run(f"{HERMES} -c -z 'a word from outside'")
    pane.wait_for("❯ a word from outside", "Heard.")


def test_a_background_process_reports_back(new_pane: NewPane) -> None:
    start = calls(
        "terminal", command="sleep 0.2; echo ready", background=True, notify_on_complete=True
    )
    pane = new_pane(start, says("Started."), says("I saw it end."))
    pane.hermes("--yolo")
    pane.say("start it")
    pane.wait_for("Started.")
    shown = pane.wait_for("I saw it end.")
    assert "\n⚙ " in shown


def test_words_typed_before_the_session_is_there_are_not_lost(new_pane: NewPane) -> None:
    pane = new_pane(says("I heard you."), says("You too."))
    pane.hermes(ready=False)
    pane.say("early bird")
    pane.say("second bird")
    shown = pane.wait_for("❯ early bird\n", "I heard you.", "❯ second bird\n", "You too.")
    assert "Interrupted" not in shown


def test_a_query_for_an_open_session_is_queued_there(new_pane: NewPane, tmp_path: Path) -> None:
    pane = new_pane(says("One."), says("Two."))
    pane.hermes()
    exchange(pane, "first", "One.")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [HERMES, "chat", "-c", "-q", "second"],
        stdin=subprocess.DEVNULL,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "Two.\n")
    assert "the message is queued there" in done.stderr
    pane.wait_for("second", "Two.")


def test_a_compacted_chat_continues_in_a_child_session(new_pane: NewPane) -> None:
    long = "word " * 400
    steps = [says(f"Answer {n}. {long}") for n in range(3)]
    pane = new_pane(
        *steps, says("Goal: none."), says("Here I am."), settings="compression: {in_place: false}\n"
    )
    pane.hermes()
    for n in range(3):
        exchange(pane, f"question {n}", f"Answer {n}.")
    exchange(pane, "/title Long talk", "now called 'Long talk'")
    exchange(pane, "/compress", "became")
    exchange(pane, "still there?", "Here I am.")
    assert "it continues in session" in pane.everything()
    exchange(pane, "/title", "Long talk #2")
