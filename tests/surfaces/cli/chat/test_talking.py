"""A conversation in the real program: typing, answers, interruptions, commands, leaving."""

from __future__ import annotations

import re
import time
from pathlib import Path

from hermes.testing.faults import paced
from hermes.testing.steps import calls, calls_many, fails, says, thinks
from tests.surfaces.cli.chat.conftest import NewPane, Talk
from tests.surfaces.cli.chat.held_clock import HeldClock
from tests.surfaces.cli.chat.pane import steady
from tests.timing import check_in_time, tries


def test_a_question_is_answered_and_a_way_back_is_told(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes()
    pane.say("read notes.txt")
    pane.wait_for("remember the milk")
    pane.wait_idle()
    pane.say("/quit")
    pane.wait(lambda text: text.rstrip().endswith("\n$"))
    banner, _, talk = steady(pane.everything()).partition("❯ read notes.txt\n")
    assert banner.split("\n")[1].startswith("⚕ Hermes ")
    assert "offline-assistant (offline) · asks before risky effects · commands " in banner
    assert talk.startswith("┊ 📖 read      notes.txt  TIME\n\n")
    assert talk.endswith(
        "❯ /quit\n\n"
        "Resume this session with:\n"
        "  hermes --resume ID\n"
        "Session: ID   Duration: TIME   Messages: 4 (1 user, 1 tool calls)   Cost: $0.00\n$"
    )


def test_the_chat_speaks_the_language_of_the_settings(new_pane: NewPane) -> None:
    steps = (calls("terminal", command="rm /etc/hosts"), says("Also nicht."))
    pane = new_pane(*steps, settings="display: {language: de}\n")
    pane.hermes()
    pane.wait_for("fragt vor riskanten Schritten")
    pane.say("go")
    pane.wait_for("Diesen Befehl ausführen?", "[4] ablehnen")
    pane.say("nein")
    pane.wait_for("→ abgelehnt", "Also nicht.")
    pane.wait_idle()
    pane.say("/quit")
    pane.wait_for("Diese Sitzung fortsetzen mit:")


def test_markdown_is_printed_as_it_becomes_complete(chat: Talk) -> None:
    table = "| a | b |\n|--|--|\n| 1 | 2 |"
    text = f"A **bold** start.\n\n- one\n- two\n\n```python\nx = 1\n```\n\n{table}\n\nEnd."
    pane = chat(paced(says(text), chunk=3, between_seconds=0.01))
    pane.say("go")
    pane.wait_for("End.")
    pane.wait_idle()
    shown = steady(pane.screen()).partition("❯ go\n")[2]
    rule = "─" * 80
    assert shown.startswith(
        f"\nA bold start.\n\n• one\n• two\n\n── python {rule[10:]}\nx = 1\n{rule}\n\n"
        " a │ b\n───┼───\n 1 │ 2\n\nEnd.\n\n⚕ test"
    )


def test_a_running_command_is_stopped_within_a_second(new_pane: NewPane) -> None:
    for one in tries():
        pane = new_pane(calls("terminal", command="sleep 60"), says("Good morning."))
        pane.hermes("--yolo")
        pane.wait_for("YOLO")
        pane.say("sleep")
        pane.wait_for("$ sleep 60", "⚕ ❯")
        begun = time.monotonic()
        pane.keys("C-c")
        pane.wait_for("Interrupted.")
        took = time.monotonic() - begun
        pane.wait_for("[stopped]")
        pane.say("wake up")
        pane.wait_for("Good morning.")
        with one:
            check_in_time(took, 1.0)


def test_two_interrupts_leave(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes()
    pane.keys("C-c")
    pane.wait_for("Ctrl+C again to quit")
    # The first of them may come too late to count as the second.
    pane.keys("C-c", "C-c")
    pane.wait(lambda text: text.rstrip().endswith("$"))


def test_an_interrupt_clears_what_is_typed_first(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes()
    pane.type("half a thought")
    pane.wait_for("❯ half a thought")
    pane.keys("C-c")
    pane.wait(lambda text: "half a thought" not in text)
    assert "again to quit" not in pane.screen()
    pane.keys("C-d")
    pane.wait(lambda text: text.rstrip().endswith("$"))


def test_words_typed_during_a_turn_stop_it_and_come_next(chat: Talk) -> None:
    slow = paced(says("This takes " + "very " * 400 + "long."), chunk=5, between_seconds=0.05)
    pane = chat(slow, says("As you wish."))
    pane.say("tell me much")
    pane.wait_for("This takes very")
    pane.say("something else")
    shown = pane.wait_for("As you wish.")
    assert re.search(r"Interrupted\.\n\n❯ something else\n\nAs you wish\.", shown)


def test_words_typed_during_a_turn_can_wait_for_it(new_pane: NewPane) -> None:
    slow = paced(says("First " + "word " * 30), chunk=5, between_seconds=0.05)
    steps, clock = (slow, says("Second."), says("Third.")), HeldClock()
    pane = new_pane(*steps, settings="display: {busy_input_mode: queue}", clock=clock)
    pane.hermes()
    clock.hold()
    pane.say("one")
    clock.let(5)
    pane.wait_for("First word")
    pane.say("two")
    pane.wait_for("1 message is queued")
    pane.say("three")
    pane.wait_for("2 messages are queued")
    clock.release()
    pane.wait_for("Third.")
    order = re.findall(r"❯ (?:one|two|three)|First|Second|Third", pane.everything())
    assert order == ["❯ one", "First", "❯ two", "Second", "❯ three", "Third"]


def test_words_that_wait_can_be_edited_or_dropped(new_pane: NewPane) -> None:
    slow = paced(says("First " + "word " * 40), chunk=5, between_seconds=0.1)
    steps, clock = (slow, says("Second.")), HeldClock()
    pane = new_pane(*steps, settings="display: {busy_input_mode: queue}", clock=clock)
    pane.hermes()
    clock.hold()
    pane.say("one")
    clock.let(5)
    pane.wait_for("First word")
    pane.say("two")
    pane.wait_for("▹ two", "1 message is queued")
    pane.say("three")
    pane.wait_for("▹ three", "2 messages are queued")
    pane.keys("Escape")
    pane.wait_for("1 message is queued")
    pane.keys("Up")
    pane.wait(lambda shown: "message is queued" not in shown and "❯ two" in shown)
    pane.say(" again")
    pane.wait_for("▹ two again")
    clock.release()
    pane.wait_for("Second.")
    order = re.findall(r"❯ (?:one|two again|two|three)|First|Second", pane.everything())
    assert order == ["❯ one", "First", "❯ two again", "Second"]


def test_words_typed_during_a_turn_can_join_it(new_pane: NewPane, project: Path) -> None:
    pane = new_pane(
        calls("terminal", command="until [ -e go ]; do sleep 0.1; done"),
        says("Both done."),
        settings="display: {busy_input_mode: steer}",
    )
    pane.hermes()
    pane.say("sleep")
    pane.wait_for("$ until [ -e go ]", "⚕ ❯")
    pane.type("and be quick")
    pane.wait_for("⚕ ❯ and be quick")
    pane.keys("Enter")
    pane.wait(lambda text: "❯ and be quick" not in text)
    (project / "go").touch()
    shown = pane.wait_for("Both done.")
    assert "Interrupted" not in shown
    assert shown.index("❯ and be quick") > shown.index("┊ 💻")


def test_a_long_paste_does_not_send_and_is_sent_whole(chat: Talk) -> None:
    pane = chat(says("That was much."))
    pane.paste("\n".join(f"line {n}" for n in range(200)))
    pane.wait_for("❯ [Pasted text #1: 200 lines]")
    pane.type(" what is it?")
    pane.keys("Enter")
    pane.wait_for("That was much.")
    assert "line 199 what is it?" in chat.requests[-1].last_text
    # The echo and the input history stay folded.
    assert "❯ [Pasted text #1: 200 lines] what is it?" in pane.everything()
    assert "line 199" not in pane.everything()
    pane.keys("Up")
    pane.wait(lambda text: text.rstrip().endswith("❯ [Pasted text #1: 200 lines] what is it?"))


def test_a_reference_is_seen_in_the_echo_and_after_a_resume(new_pane: NewPane) -> None:
    pane = new_pane(says("Milk."))
    pane.hermes()
    pane.say("what does @file:notes.txt say?")
    pane.wait_for("Milk.")
    assert "❯ what does say? @file:notes.txt" in pane.everything()
    pane.wait_idle()
    pane.keys("C-d")
    pane.wait_for("Resume this session with")
    pane.run("clear")
    pane.hermes("-c")
    pane.wait_for("❯ what does say? @file:notes.txt")


def test_a_key_shows_the_output_of_the_last_tool(chat: Talk) -> None:
    pane = chat(calls("terminal", command="seq 1000 1005"), says("Counted."))
    pane.say("count")
    assert "1004" not in pane.wait_for("Counted.")
    pane.wait_idle()
    pane.keys("C-o")
    shown = pane.wait_for("┊   1004")
    assert "┊   $ seq 1000 1005\n" in shown
    pane.keys("C-o")
    pane.wait_for("no more tool output")


def test_a_plan_is_shown_as_a_list(chat: Talk) -> None:
    states = {"a": "completed", "b": "in_progress", "c": "pending"}
    todos = [{"id": n, "content": f"task {n}", "status": state} for n, state in states.items()]
    pane = chat(calls("todo", todos=todos), says("Planned."))
    pane.say("plan")
    shown = pane.wait_for("Planned.")
    assert "┊   ☑ task a\n┊   ▸ task b\n┊   ☐ task c\n" in shown


def test_lines_are_added_with_alt_enter_ctrl_j_and_a_backslash(chat: Talk) -> None:
    pane = chat(says("Four lines."))
    pane.type("one")
    pane.keys("M-Enter")
    pane.type("two")
    pane.keys("C-j")
    pane.type("three\\")
    pane.keys("Enter")
    pane.say("four")
    shown = pane.wait_for("Four lines.")
    assert "❯ one\n  two\n  three\n  four\n" in shown


def test_what_was_typed_before_comes_back_with_the_arrow(new_pane: NewPane, tmp_path: Path) -> None:
    pane = new_pane()
    pane.hermes()
    pane.say("what is 1 + 1")
    pane.wait_for("2\n")
    pane.wait_idle()
    pane.keys("C-d")
    pane.wait_for("Resume this")
    pane.run("clear")
    pane.hermes()
    pane.keys("Up")
    pane.wait_for("❯ what is 1 + 1")
    assert (tmp_path / "home" / ".hermes_history").stat().st_mode & 0o777 == 0o600


def test_reasoning_is_shown_on_request_only(new_pane: NewPane) -> None:
    step = thinks("First I ponder.\nThen I know.", then=says("42."))
    quiet = new_pane(step)
    quiet.hermes()
    quiet.say("why")
    assert "ponder" not in quiet.wait_for("42.")
    quiet.keys("C-d")
    open_minded = new_pane(step, settings="display: {show_reasoning: true}")
    open_minded.hermes()
    open_minded.say("why")
    shown = open_minded.wait_for("42.")
    assert "┊ First I ponder.\n┊ Then I know.\n\n42." in shown


def test_changes_are_shown_as_a_diff(chat: Talk) -> None:
    change = calls("patch", path="notes.txt", old_string="milk", new_string="bread")
    pane = chat(calls("read_file", path="notes.txt"), change, says("Changed."))
    pane.say("bread instead")
    shown = steady(pane.wait_for("Changed."))
    assert (
        "┊ 📖 read      notes.txt  TIME\n"
        "┊ 🔧 patch     notes.txt +1 −1  TIME\n"
        "┊   1 - remember the milk\n"
        "┊   1 + remember the bread\n"
    ) in shown


def test_tool_lines_can_be_left_out(new_pane: NewPane) -> None:
    reading = calls_many(("read_file", {"path": "notes.txt"}), ("todo", {}))
    pane = new_pane(reading, says("Read."), settings="display: {tool_progress: 'off'}")
    pane.hermes()
    pane.say("read")
    assert "┊" not in pane.wait_for("Read.")


def test_a_failure_of_the_model_is_one_clear_line(chat: Talk) -> None:
    pane = chat(fails(401, "Incorrect API key"), says("Better."))
    pane.say("hello")
    shown = pane.wait_for("error:")
    assert "Traceback" not in shown
    pane.wait_idle()
    pane.say("again")
    pane.wait_for("Better.")


def test_the_terminal_gets_no_colours_that_are_not_wanted(new_pane: NewPane) -> None:
    pane = new_pane(says("Some **words** and\n\n```python\nx = 1\n```"))
    pane.run("export NO_COLOR=1")
    pane.hermes()
    pane.say("hi")
    pane.wait_for("x = 1")
    pane.wait_idle()
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", pane.coloured())


def test_a_dumb_terminal_gets_lines_only(new_pane: NewPane) -> None:
    ask = calls("clarify", question="Which colour?", choices=["red", "blue"])
    pane = new_pane(ask, says("Blue it is."))
    pane.run("export TERM=dumb")
    pane.hermes(ready=False)
    pane.wait_for("test (custom)", "❯")
    pane.say("ask me")
    pane.wait_for("[1] red   [2] blue", "? ❯")
    pane.say("2")
    shown = pane.wait_for("Blue it is.")
    assert "⠋" not in shown and "│" not in shown


def test_without_a_terminal_it_says_what_to_do(new_pane: NewPane) -> None:
    pane = new_pane()
    pane.hermes("< /dev/null; echo code $?", ready=False)
    assert "hermes -z" in pane.wait_for("code 2")
