"""What tools answered: the details first, the text with care."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.core.messages import Text, ToolCall, ToolResult
from hermes.providers.offline.plan import ReferenceContext
from hermes.providers.offline.tool_output import (
    FileLines,
    file_lines,
    found_count,
    found_files,
    found_lines,
    has_succeeded,
    is_unchanged,
    output,
    was_refused,
)
from tests.providers.offline.talk import Answer, files, matches, ran, refused, shown


def result(answer: Answer, name: str = "terminal", **arguments: object) -> ToolResult:
    return answer.to(call(name, **arguments))


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id="c", name=name, arguments=dict(arguments))


def plain(text: str, details: JsonObject | None = None, failed: bool = False) -> ToolResult:
    parts = (Text(text=text),)
    return ToolResult(call_id="c", name="x", parts=parts, details=details or {}, failed=failed)


def test_a_command_is_judged_by_its_exit_code() -> None:
    assert has_succeeded(result(ran("ok")))
    assert not has_succeeded(result(ran("bad", code=2)))
    assert has_succeeded(
        result(Answer(text="", details={"exit_code": 1, "exit_code_meaning": "none"}))
    )


def test_the_exit_code_of_a_background_process_is_not_that_of_the_look_at_it() -> None:
    assert has_succeeded(result(Answer(text="", details={"exit_code": 1}), name="process"))


def test_a_refusal_is_not_a_failed_command() -> None:
    assert was_refused(result(refused()))
    assert not was_refused(result(ran("", code=1)))


def test_notes_of_the_tool_are_not_output() -> None:
    assert output(plain("a\nb\n[exit 1]\n[cwd is now /x]")) == "a\nb"
    assert output(plain("[no output]")) == ""
    assert output(plain('["a", "b"]\n[1]')) == '["a", "b"]\n[1]'


def test_numbered_lines_become_plain_ones() -> None:
    part = file_lines(result(shown(["a|b", "", "  c"], first=7, total=40)))
    assert part == FileLines(lines=("a|b", "", "  c"), first=7, total=40)
    assert file_lines(plain("(the file is empty)", {"total_lines": 0})).lines == ()


def test_only_an_answer_without_lines_can_say_that_nothing_changed() -> None:
    assert is_unchanged(plain("see above", {"status": "unchanged"}))
    assert not is_unchanged(plain("1|x", {"status": "unchanged"}))


def test_files_are_as_short_as_the_text_has_them() -> None:
    assert found_files(result(files("a.txt", "src/b.txt"))) == ("a.txt", "src/b.txt")
    assert found_files(result(matches(a_py=["x"], b_py=["y"]))) == ("a.py", "b.py")
    assert found_files(plain("a.txt: 3\nb.txt: 1", {"files": ["/w/a.txt", "/w/b.txt"]})) == (
        "a.txt",
        "b.txt",
    )


def test_the_text_may_name_more_files_than_the_details() -> None:
    assert found_files(plain("a\nb\nc", {"files": ["/w/a"]})) == ("a", "b", "c")
    assert found_files(plain("a\nb\n[2 files]")) == ("a", "b")
    assert found_files(plain("Nothing found.", {"files": []})) == ()


def test_details_of_an_unknown_shape_are_left_aside() -> None:
    assert found_files(plain("", {"files": [{"path": "/w/a"}, 3, None]})) == ("/w/a",)
    assert found_count(plain("", {"total_count": "many"})) == 0


def test_lines_of_one_file_lose_their_numbers() -> None:
    assert found_lines(result(matches(a_py=["def a():", "  def b():"]))) == [
        "def a():",
        "  def b():",
    ]


def test_the_focus_follows_reads_searches_and_listings() -> None:
    focus = ReferenceContext()
    focus.note(call("read_file", path="a.txt"), result(shown(["x"]), name="read_file"))
    assert focus.resolve("it") == "a.txt"
    focus.note(call("search_files", path="src"), result(files("b", "c"), name="search_files"))
    assert [focus.resolve(each) for each in ("it", "there", "2", "-1", "9")] == [
        "b",
        "src",
        "c",
        "c",
        "",
    ]
    focus.note(call("terminal", command="ls"), result(ran("d\ne/")))
    assert (focus.items, focus.folder, focus.count) == (("d", "e"), ".", 2)


def test_a_change_of_folder_takes_relative_names_out_of_view() -> None:
    focus = ReferenceContext()
    focus.note(call("terminal", command="ls -1p"), result(ran("a.txt", cwd="/w")))
    assert focus.resolve("it") == "a.txt"
    focus.note(call("terminal", command="cd src"), result(ran("", cwd="/w/src")))
    assert (focus.resolve("it"), focus.resolve("1")) == ("", "")


def test_a_moved_file_is_it_and_a_deleted_one_is_not() -> None:
    focus = ReferenceContext()
    focus.note(call("terminal", command="mv -nv a 'b c'"), result(ran("renamed")))
    assert focus.resolve("it") == "b c"
    focus.note(call("terminal", command="rm 'b c'"), result(ran("")))
    assert focus.resolve("it") == ""


def test_a_stopped_process_is_no_longer_the_process() -> None:
    focus = ReferenceContext()
    focus.note(call("terminal", command="x"), result(ran("", session_id="proc_1")))
    assert focus.process == "proc_1"
    stop = call("process", action="kill", session_id="proc_1")
    focus.note(stop, result(Answer(text="Killed."), name="process"))
    assert focus.process == ""


def test_a_failure_is_kept_for_the_question_why() -> None:
    focus = ReferenceContext()
    failed = call("read_file", path="x")
    focus.note(failed, result(refused("no"), name="read_file"))
    assert focus.failure is not None
    assert focus.failure[0] == failed
    assert focus.file == ""
