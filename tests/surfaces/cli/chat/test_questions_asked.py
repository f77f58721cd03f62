"""Approvals and questions in the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.faults import paced
from hermes.testing.steps import Step, calls, says
from tests.surfaces.cli.chat.conftest import NewPane, Talk
from tests.surfaces.cli.chat.pane import Pane

# Its text does not tell where it writes, so it is asked about.
TOUCH = calls("terminal", command="touch ${PLACE:-.}/made.txt")
COLOUR = calls("clarify", question="Which colour?", choices=["red", "blue"])


def asking(chat: Talk, *steps: Step) -> Pane:
    """A pane in which the first question is open."""
    pane = chat(*steps)
    pane.say("do it")
    pane.wait_for("⚠ ❯")
    return pane


def test_the_question_shows_what_would_run(chat: Talk) -> None:
    pane = asking(chat, calls("terminal", command="touch a\x1b[8m\ntouch b"), says("Done."))
    # What hides signs is allowed for one time only.
    shown = pane.wait_for("[1] once   [2] deny", "→ deny)")
    assert "╭─ ⚠ Run this command? ──" in shown
    assert "│ cwd ~/project · category " in shown
    assert "│ touch a\\x1b[8m\n│ touch b\n╰──" in shown


def test_a_number_allows_once(chat: Talk) -> None:
    pane = asking(chat, TOUCH, says("Done."), TOUCH, says("Done again."))
    pane.keys("1")
    pane.wait_for("→ allowed: once", "Done.")
    assert (chat.project / "made.txt").exists()
    pane.say("again")
    pane.wait_for("⚠ ❯")


def test_arrows_and_enter_allow_for_the_session(chat: Talk) -> None:
    pane = asking(chat, TOUCH, says("Done."), TOUCH, says("Done again."))
    pane.keys("Right", "Right", "Enter")
    pane.wait_for("→ allowed: this session", "Done.")
    pane.say("again")
    pane.wait_for("Done again.")


@pytest.mark.parametrize("key", ["4", "Escape", "n Enter"])
def test_no_is_no(chat: Talk, key: str) -> None:
    pane = asking(chat, TOUCH, says("I did not."))
    pane.keys(*key.split())
    pane.wait_for("→ denied", "[denied]", "I did not.")
    assert not (chat.project / "made.txt").exists()


def test_a_denial_can_have_a_reason_that_the_model_reads(chat: Talk) -> None:
    pane = asking(chat, TOUCH, says("I use the trash."))
    pane.keys("Tab")
    pane.wait_for("reason ❯", "Esc goes back")
    pane.keys("Escape")
    pane.wait_for("⚠ ❯")
    pane.keys("Tab")
    pane.say("use the trash instead")
    pane.wait_for("→ denied (use the trash instead)", "I use the trash.")
    assert "the person said no: use the trash instead" in str(chat.requests[-1].body)


def test_a_write_is_shown_with_its_content_and_can_be_allowed_for_its_folder(chat: Talk) -> None:
    elsewhere = chat.project.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    lines = "".join(f"line {n}\n" for n in range(40))

    def write(name: str, content: str) -> Step:
        return calls("write_file", path=str(elsewhere / name), content=content)

    steps = (write("a.txt", lines), write("b.txt", "more\n"), says("Both are written."))
    pane = asking(chat, *steps)
    shown = pane.wait_for("new file · 40 lines", "[3] in this folder")
    assert "│  1 + line 0\n" in shown and "line 39" not in shown
    assert "overwrite" not in shown
    pane.keys("?")
    pane.wait_for("│ 40 + line 39")
    pane.keys("3")
    pane.wait_for("Both are written.")
    assert "→ allowed: in this folder" in pane.everything()
    assert (elsewhere / "b.txt").read_text() == "more\n"


def test_silence_is_no(new_pane: NewPane, project: Path) -> None:
    pane = new_pane(TOUCH, says("I did not."), settings="approvals: {timeout: 0.3}")
    pane.hermes()
    pane.say("do it")
    pane.wait_for("→ denied (no answer in time)", "I did not.")
    assert not (project / "made.txt").exists()


def test_an_interrupt_ends_the_question_too(chat: Talk) -> None:
    pane = asking(chat, TOUCH, says("Next."))
    pane.keys("C-c")
    pane.wait_for("Interrupted.")
    pane.say("go on")
    pane.wait_for("Next.")


def test_a_draft_survives_a_question(chat: Talk) -> None:
    slow = paced(TOUCH, chunk=2, between_seconds=0.1)
    pane = chat(slow, says("Done."))
    chat.clock.hold()
    pane.say("do it")
    pane.wait_for("⚕ ❯")
    pane.type("1 more thing")
    pane.wait_for("⚕ ❯ 1 more thing")
    chat.clock.release()
    shown = pane.wait_for("⚠ ❯")
    # Typing that goes on while the question opens is no answer to it.
    assert "⚠ ❯ 1" not in shown
    assert "allowed" not in shown
    pane.keys("Escape")
    pane.wait_for("→ denied", "❯ 1 more thing", "Done.")


def test_a_question_is_answered_by_number_or_in_words(chat: Talk) -> None:
    pane = chat(COLOUR, says("Fine."), COLOUR, says("Fine too."))
    pane.say("ask")
    pane.wait_for("?  Which colour?", "[1] red   [2] blue   or type your answer", "? ❯")
    pane.keys("2")
    pane.wait_for("→ blue", "Fine.")
    pane.say("ask again")
    pane.wait_for("? ❯")
    pane.say("something like 2 shades of green")
    pane.wait_for("→ something like 2 shades of green", "Fine too.")


FAKE_SUDO = """\
#!/bin/bash
# Wants a password for everything, as sudo does before it has heard one.
case "$*" in
  *-n*) exit 1 ;;
  *-S*) read -r given; [ "$given" = "open sesame" ] && touch "$HOME/.opened"; exit $? ;;
esac
[ -e "$HOME/.opened" ] || exit 1
exec "$@"
"""


def test_a_password_is_typed_unseen(new_pane: NewPane, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sudo").write_text(FAKE_SUDO)
    (tools / "sudo").chmod(0o755)
    pane = new_pane(calls("terminal", command="sudo echo as root"), says("Done so."))
    pane.run(f"export PATH={tools}:$PATH")
    pane.hermes()
    pane.say("be root")
    pane.wait_for("[1] once")
    pane.keys("1")
    pane.wait_for("Password for sudo", "🔐 ❯", "press Esc to decline")
    pane.type("open sesame")
    pane.wait_for("🔐 ❯ ***********")
    pane.keys("Enter")
    pane.wait_for("Done so.")
    pane.wait_idle()
    assert "open sesame" not in pane.everything()
    assert "open sesame" not in (tmp_path / "home" / ".hermes_history").read_text()
