from __future__ import annotations

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.tools.edits.text import apply_splices
from hermes.tools.edits.v4a import (
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    MoveFile,
    UpdateFile,
    parse,
    splices,
)


def rows(*lines: str) -> tuple[HunkLine, ...]:
    return tuple(HunkLine(mark=line[0], text=line[1:]) for line in lines)


def patched(text: str, *lines: str) -> str:
    body = "\n".join(("*** Begin Patch", "*** Update File: f", *lines, "*** End Patch"))
    (update,) = parse(body)
    assert isinstance(update, UpdateFile)
    return apply_splices(text, splices(text, update.hunks))


def test_every_kind_of_operation_is_read() -> None:
    text = """*** Begin Patch
*** Update File: src/a.py
@@ class A @@
@@ def f(self):
 one
-two
+2

 four
@@
-last
*** End of File
*** Add File: b.txt
+hello
+

+end

*** Delete File: old name.txt
*** Move File: c.txt -> d/e.txt
*** Update File: g
*** Move to: h
+x
*** End Patch
"""
    assert parse(text) == (
        UpdateFile(
            path="src/a.py",
            hunks=(
                Hunk(
                    hints=("class A", "def f(self):"),
                    rows=rows(" one", "-two", "+2", " ", " four"),
                ),
                Hunk(rows=rows("-last"), at_end=True),
            ),
        ),
        AddFile(path="b.txt", text="hello\n\n\nend\n"),
        DeleteFile(path="old name.txt"),
        MoveFile(path="c.txt", target="d/e.txt"),
        UpdateFile(path="g", target="h", hunks=(Hunk(rows=rows("+x")),)),
    )


def test_words_and_fences_around_a_patch_are_ignored() -> None:
    text = "Here:\n```\n*** Begin Patch\r\n*** Delete File: a\r\n*** End Patch\n```\n"
    assert parse(text) == (DeleteFile(path="a"),)


def test_line_numbers_of_a_unified_diff_are_no_hint() -> None:
    (update,) = parse(
        "*** Begin Patch\n*** Update File: a\n@@ -1,2 +3 @@ def f():\n-x\n*** End Patch"
    )
    assert update == UpdateFile(path="a", hunks=(Hunk(rows=rows("-x"), hints=("def f():",)),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with"),
        ("*** Begin Patch\n*** End Patch", "empty"),
        ("*** Begin Patch\n*** Update File: a\n-x\n+y", "cut off"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", "changes nothing"),
        ("*** Begin Patch\n*** Update File: a\n x\n y\n*** End Patch", "no '-' or"),
        ("*** Begin Patch\n*** Update File: a\n-x\nwrong\n*** End Patch", "Line 4"),
        ("*** Begin Patch\n*** Add File: a\nwrong\n*** End Patch", "Line 3"),
        ("*** Begin Patch\n*** Move File: a\n*** End Patch", "old -> new"),
        ("*** Begin Patch\nwhat\n*** End Patch", "Line 2"),
    ],
)
def test_a_patch_that_cannot_be_read_says_where(text: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        parse(text)


def test_context_stays_as_the_file_has_it() -> None:
    text = "def f():\n\tx = 1   \n\ty = 2\n"
    assert patched(text, " def f():", "     x = 1", "-    y = 2", "+    y = 3") == (
        "def f():\n\tx = 1   \n\ty = 3\n"
    )


def test_a_hint_chooses_between_equal_places() -> None:
    text = "class A:\n    x = 1\nclass B:\n    x = 1\n"
    assert patched(text, "@@ class B: @@", "-    x = 1", "+    x = 2") == (
        "class A:\n    x = 1\nclass B:\n    x = 2\n"
    )


def test_nested_hints_lead_inwards() -> None:
    text = "class A:\n  def f():\n    x\nclass B:\n  def g():\n    x\n  def f():\n    x\n"
    assert patched(text, "@@ class B", "@@ def f", "-    x", "+    y") == (
        "class A:\n  def f():\n    x\nclass B:\n  def g():\n    x\n  def f():\n    y\n"
    )


def test_a_hunk_that_fits_twice_is_refused() -> None:
    with pytest.raises(ToolError, match=r"2 places \(lines 1, 3\)"):
        patched("x\ny\nx\n", "-x", "+z")


def test_a_later_hunk_is_looked_for_below_the_earlier_one() -> None:
    assert patched("a\nx\nb\nx\n", " b", "-x", "+2") == "a\nx\nb\n2\n"
    assert patched("x\na\nb\nx\n", "-a", "+A", "@@", "-x", "+X") == "x\nA\nb\nX\n"


def test_hunks_may_come_in_any_order() -> None:
    assert patched("a\nb\nc\n", "-c", "+C", "@@", "-a", "+A") == "A\nb\nC\n"


def test_a_hunk_at_the_end_fits_the_last_place_only() -> None:
    assert patched("x\ny\nx\n", "-x", "+z", "*** End of File") == "x\ny\nz\n"


def test_only_added_rows_go_to_the_end_or_below_the_hint() -> None:
    assert patched("a\nb\n", "+c") == "a\nb\nc\n"
    assert patched("a\nb", "+c") == "a\nb\nc"
    assert patched("", "+c") == "c\n"
    assert patched("a\nb\n", "@@ a", "+c") == "a\nc\nb\n"
    with pytest.raises(ToolError, match="to insert after"):
        patched("a\n", "@@ zzz", "+c")


def test_the_last_line_without_a_newline_can_go() -> None:
    assert patched("a\nb", " a", "-b") == "a"
    assert patched("a", "-a", "+b", "+c") == "b\nc"


def test_a_hunk_that_does_not_fit_shows_what_is_near() -> None:
    with pytest.raises(ToolError, match=r"hunk 1(.|\n)*2\|def settings\(\):"):
        patched("x\ndef settings():\n", "-def setting():", "+y")


def as_hunks(before: list[str], after: list[str], context: int) -> list[str]:
    diff = difflib.unified_diff(before, after, n=context, lineterm="")
    return ["@@" if line.startswith("@@") else line for line in list(diff)[2:]]


unlike = st.lists(st.integers(0, 60), unique=True, max_size=30)


@settings(deadline=None)
@given(before=unlike, after=unlike, final=st.booleans(), context=st.integers(1, 4))
def test_a_diff_of_unlike_lines_leads_from_one_text_to_the_other(
    before: list[int], after: list[int], final: bool, context: int
) -> None:
    old, new = [f"line {n}" for n in before], [f"line {n}" for n in after]
    if old == new or not old:
        return
    end = "\n" if final else ""
    expected = "\n".join(new) + end if new else ""
    assert patched("\n".join(old) + end, *as_hunks(old, new, context)) == expected


few = st.lists(st.sampled_from(["a", "b", "", "  a"]), min_size=1, max_size=14)


@settings(deadline=None)
@given(before=few, after=few)
def test_a_diff_of_similar_lines_is_applied_rightly_or_refused(
    before: list[str], after: list[str]
) -> None:
    if before == after:
        return
    text = "".join(row + "\n" for row in before)
    try:
        result = patched(text, *as_hunks(before, after, 3))
    except ToolError as refused:
        assert "places" in str(refused)
        return
    assert result == "".join(row + "\n" for row in after)
