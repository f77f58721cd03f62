"""Tool calls as people see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.codec.values import JsonObject, replace
from hermes.commands.formatting import short_path
from hermes.commands.tool_calls import CallDescription, FailedEdits, describe_call, failure_reason
from hermes.core.messages import Text, ToolCall, ToolResult
from hermes.core.tool_calls import INTERRUPTED, UNKNOWN_OUTCOME


def call(name: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=arguments)


def shown(name: str, details: JsonObject | None = None, /, **arguments: object) -> tuple[str, str]:
    described = describe_call(call(name, **arguments), details, root="/work/proj")
    return described.verb, described.detail


def failed(text: str, **details: object) -> ToolResult:
    return ToolResult(call_id="1", name="x", parts=(Text(text=text),), failed=True, details=details)


def test_a_command_is_told_by_its_first_line() -> None:
    assert shown("terminal", command="make test") == ("$", "make test")
    assert shown("terminal", command="a\nb\nc") == ("$", "a … (+2 lines)")
    assert shown("terminal", command="serve", background=True) == ("$", "serve &")


def test_files_are_told_from_the_folder_of_the_session() -> None:
    assert shown("read_file", path="/work/proj/src/a.py") == ("read", "src/a.py")
    assert shown("write_file", path="/etc/hosts") == ("write", "/etc/hosts")


def test_a_part_of_a_file_says_which_part() -> None:
    details: JsonObject = {"start": 10, "shown": 5, "total_lines": 90, "truncated": True}
    assert shown("read_file", details, path="a.py") == ("read", "a.py (lines 10-14 of 90)")


def test_a_change_says_how_much_it_changed() -> None:
    one: JsonObject = {"path": "/work/proj/a.py", "files_modified": ["a"], "added": 2, "removed": 1}
    assert shown("patch", one, path="a.py") == ("patch", "a.py +2 −1")
    two: JsonObject = {"files_modified": ["a"], "files_created": ["b"], "added": 7}
    assert shown("patch", two, patch="…") == ("patch", "2 files +7 −0")


def test_a_search_says_what_and_where() -> None:
    assert shown("search_files", pattern="TODO", path="src") == ("grep", "TODO in src")
    found = shown("search_files", pattern="*.py", target="files", path=".", file_glob="*.py")
    assert found == ("find", "*.py (*.py)")


def test_memory_skills_and_the_past_have_words_of_their_own() -> None:
    added = shown("memory", target="user", action="add", content="Likes tea.")
    assert added == ("memory", "add user: Likes tea.")
    assert shown("memory", target="memory", operations=[{}, {}]) == (
        "memory",
        "2 changes memory",
    )
    assert shown("session_search", query="apple trees") == ("recall", "apple trees")
    assert shown("session_search") == ("recall", "recent sessions")
    assert shown("skills_list") == ("skills", "")
    assert shown("skill_view", name="plan", file_path="a.md") == ("skill", "plan a.md")
    assert shown("skill_manage", action="create", name="deploy") == ("create", "deploy")
    assert shown("skill_manage", action="write_file", name="deploy") == ("skill", "write deploy")


def test_a_tool_behind_another_is_told_as_itself() -> None:
    inner = {"command": "ls"}
    assert shown("tool_call", name="terminal", arguments=inner) == ("$", "ls")
    assert shown("tool_call", name="tool_call", arguments={"name": "tool_call"})[0] == "tool_call"
    assert shown("tool_call", name="far__away", arguments="nonsense") == ("far__away", "")


def test_the_plan_says_how_far_it_is() -> None:
    details: JsonObject = {"summary": {"total": 5, "completed": 3}}
    assert shown("todo", details, todos=[]) == ("plan", "3 of 5 done")


def test_an_unknown_tool_is_told_by_its_name_and_first_words() -> None:
    made = describe_call(call("fly", height=3, where="to the\nmoon"))
    assert made == CallDescription(emoji="⚡", verb="fly", detail="to the moon")


def test_arguments_of_a_wrong_kind_do_no_harm() -> None:
    assert shown("terminal", command=["rm", "x"]) == ("$", "['rm', 'x']")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (failed("boom\n[exit 2]", exit_code=2), "exit 2"),
        (failed("…", exit_code=124, timed_out=True), "timed out"),
        (failed("…", exit_code=130, interrupted=True), "stopped"),
        (replace(failed("Not allowed: no."), denied="person"), "denied"),
        (failed(INTERRUPTED), "skipped"),
        (failed(UNKNOWN_OUTCOME), "outcome unknown"),
        (failed("There is no file x.\nSimilar: y"), "There is no file x."),
        (failed(""), "error"),
    ],
)
def test_failures_are_told_in_a_word_or_two(result: ToolResult, words: str) -> None:
    assert failure_reason(result) == words


def test_paths_are_told_from_home() -> None:
    home = str(Path.home())
    assert short_path(f"{home}/x") == "~/x"
    assert short_path(home) == "~"
    assert short_path(f"{home}x/y") == f"{home}x/y"
    assert short_path("/work/proj", "/work/proj") == "."


def note(edits: FailedEdits, name: str, path: str, *, failed: bool) -> None:
    call = ToolCall(id=path, name=name, arguments={"path": path})
    edits.note(call, ToolResult(call_id=path, name=name, parts=(Text(text="x"),), failed=failed))


def test_a_turn_whose_edits_all_failed_has_changed_nothing() -> None:
    edits = FailedEdits("/srv/proj")
    assert edits.warning() == ""
    note(edits, "terminal", "ls", failed=True)
    assert edits.warning() == ""
    note(edits, "write_file", "/srv/proj/a.txt", failed=True)
    note(edits, "patch", "b.txt", failed=True)
    assert edits.warning() == "No file was changed: every edit failed (a.txt, b.txt)."


def test_one_edit_that_went_through_is_enough() -> None:
    edits = FailedEdits()
    note(edits, "patch", "a", failed=True)
    note(edits, "patch", "a", failed=False)
    assert edits.warning() == ""


def test_many_files_are_counted() -> None:
    edits = FailedEdits()
    for name in "abcde":
        note(edits, "patch", name, failed=True)
    assert edits.warning() == "No file was changed: every edit failed (a, b, c and 2 more)."
