"""The lines that tell what tools did."""

from __future__ import annotations

from hermes.commands.tool_calls import CallDescription
from hermes.core.messages import Text, ToolCall, ToolResult
from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.chat.screen import Paint
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


def test_a_diff_shows_the_changed_lines_without_file_names() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n"
    assert diff_lines(diff, PLAIN, 80) == [
        "┊   @@ -1 +1 @@",
        "┊   -old",
        "┊   +new",
        "┊    same",
    ]
    assert diff_lines(diff, COLOURS, 80)[1] == "\x1b[31m┊   -old\x1b[0m"


def test_a_long_diff_says_how_much_is_left_out() -> None:
    diff = "".join(f"+{n}\n" for n in range(DIFF_LINES + 5))
    rows = diff_lines(diff, PLAIN, 80)
    assert (len(rows), rows[-1]) == (DIFF_LINES + 1, "┊   … 5 more lines")


def test_verbose_lines_have_arguments_and_the_beginning_of_the_result() -> None:
    call = ToolCall(id="1", name="terminal", arguments={"command": "ls"})
    rows = verbose_lines(call, result(text="\n".join("abc" * 10)), PLAIN, 80)
    assert rows[:2] == ['┊   {"command":"ls"}', "┊   a"]
    assert rows[-1] == "┊   … 10 more lines"
