"""Edits that failed are named when nothing else went through."""

from __future__ import annotations

from hermes.commands.tool_calls import FailedEdits
from hermes.core.messages import Text, ToolCall, ToolResult


def note(unmade: FailedEdits, name: str, path: str, *, failed: bool) -> None:
    call = ToolCall(id=path, name=name, arguments={"path": path})
    unmade.note(call, ToolResult(call_id=path, name=name, parts=(Text(text="x"),), failed=failed))


def test_a_turn_whose_edits_all_failed_has_changed_nothing() -> None:
    unmade = FailedEdits("/srv/proj")
    assert unmade.warning() == ""
    note(unmade, "terminal", "ls", failed=True)
    assert unmade.warning() == ""
    note(unmade, "write_file", "/srv/proj/a.txt", failed=True)
    note(unmade, "patch", "b.txt", failed=True)
    assert unmade.warning() == "No file was changed: every edit failed (a.txt, b.txt)."


def test_one_edit_that_went_through_is_enough() -> None:
    unmade = FailedEdits()
    note(unmade, "patch", "a", failed=True)
    note(unmade, "patch", "a", failed=False)
    assert unmade.warning() == ""


def test_many_files_are_counted() -> None:
    unmade = FailedEdits()
    for name in "abcde":
        note(unmade, "patch", name, failed=True)
    assert unmade.warning() == "No file was changed: every edit failed (a, b, c and 2 more)."
