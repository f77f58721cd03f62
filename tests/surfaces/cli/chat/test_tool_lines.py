"""The lines that tell what tools did."""

from __future__ import annotations

from hermes.commands.tool_calls import CallDescription
from hermes.core.messages import Text, ToolCall, ToolResult
from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import built_in_skins
from hermes.surfaces.cli.chat.tool_lines import DIFF_LINES, diff_lines, tool_line, verbose_lines

PLAIN = Paint(colours=False)
COLOURS = Paint(colours=True)
DEED = CallDescription(emoji="💻", verb="$", detail="make test")


def result(*, failed: bool = False, text: str = "", **details: object) -> ToolResult:
    return ToolResult(
        call_id="1", name="terminal", parts=(Text(text=text),), failed=failed, details=details
    )


def test_a_line_has_a_sign_a_verb_a_detail_and_a_duration() -> None:
    assert tool_line(DEED, result(), 0.25, PLAIN, 80) == "┊ 💻 $         make test  0.2s"


def test_a_failure_adds_its_reason_in_red() -> None:
    line = tool_line(DEED, result(failed=True, exit_code=1), 62, COLOURS, 80)
    assert line.endswith("1m 02s\x1b[0m\x1b[31m  [exit 1]\x1b[0m")


def test_a_long_detail_is_cut_so_that_the_line_stays_one_row() -> None:
    long = CallDescription(emoji="💻", verb="$", detail="echo 你好 " * 30)
    line = tool_line(long, result(failed=True, exit_code=1), 1, PLAIN, 60)
    assert cells(line) <= 60
    assert line.endswith("…  1.0s  [exit 1]")


def test_a_long_reason_is_cut_too_where_the_window_is_narrow() -> None:
    line = tool_line(DEED, result(failed=True, text="no such words " * 9), 1, PLAIN, 45)
    assert cells(line) <= 45
    assert line.endswith("…]") and "make te…" in line


def test_the_preview_can_be_limited() -> None:
    assert "make …" in tool_line(DEED, result(), 0, PLAIN, 80, preview=6)


def test_a_diff_shows_the_changed_lines_with_their_numbers() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -9,2 +9,2 @@\n-old\n+new\n same\n@@ -30 +30 @@\n-a\n+b\n"
    assert diff_lines(diff, PLAIN, 80) == [
        "┊    9 - old",
        "┊    9 + new",
        "┊   10   same",
        "┊      ⋮",
        "┊   30 - a",
        "┊   30 + b",
    ]
    assert diff_lines(diff, COLOURS, 80)[0] == "\x1b[2m┊   \x1b[0m\x1b[31m 9 - old\x1b[0m"


def test_a_diff_of_several_files_names_them() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/y.py\n@@ -0,0 +1 @@\n+c\n"
    rows = diff_lines(diff, PLAIN, 80)
    assert rows == ["┊   x", "┊   1 - a", "┊   1 + b", "┊   y.py", "┊   1 + c"]


def test_changed_lines_that_look_like_file_names_are_lines() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- old rule\n+++ new rule\n"
    assert diff_lines(diff, PLAIN, 80) == ["┊   1 - -- old rule", "┊   1 + ++ new rule"]


def test_a_skin_of_words_says_what_was_added() -> None:
    paint = Paint(colours=False)
    paint.apply_skin(built_in_skins()["plain"])
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
    assert diff_lines(diff, paint, 80) == ["tool:   removed 1: old", "tool:   added 1: new"]


def test_a_long_diff_says_how_much_is_left_out() -> None:
    diff = "".join(f"+{n}\n" for n in range(DIFF_LINES + 5))
    rows = diff_lines(diff, PLAIN, 80)
    assert (len(rows), rows[-1]) == (DIFF_LINES + 1, "┊   … 5 more lines")


def test_verbose_lines_have_arguments_and_the_beginning_of_the_result() -> None:
    call = ToolCall(id="1", name="terminal", arguments={"command": "ls"})
    rows = verbose_lines(call, result(text="\n".join("abc" * 10)), PLAIN, 80)
    assert rows[:2] == ['┊   {"command":"ls"}', "┊   a"]
    assert rows[-1] == "┊   … 10 more lines"
