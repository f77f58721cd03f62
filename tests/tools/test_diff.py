from __future__ import annotations

import difflib

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.tools.edits.text import shorten, unified_diff

few = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=30).map("".join)


def test_a_missing_last_newline_is_shown() -> None:
    assert unified_diff("a", "b\n", old_name="a/f", new_name="b/f").text == (
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
    )


def test_far_changes_are_hunks_of_their_own() -> None:
    rows = [f"{n}\n" for n in range(30)]
    changed = ["first\n", *rows[1:29], "last\n"]
    diff = unified_diff("".join(rows), "".join(changed), old_name="a", new_name="b")
    assert diff.text == (
        "--- a\n+++ b\n@@ -1,4 +1,4 @@\n-0\n+first\n 1\n 2\n 3\n"
        "@@ -27,4 +27,4 @@\n 26\n 27\n 28\n-29\n+last\n"
    )
    assert (diff.added, diff.removed) == (2, 2)


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n", old_name="a", new_name="b").text == ""


def test_wholly_new_large_texts_are_compared_cheaply() -> None:
    old = "".join(f"old {n}\n" for n in range(5000))
    new = "".join(f"new {n}\n" for n in range(5000))
    diff = unified_diff("same\n" + old, "same\n" + new, old_name="a", new_name="b")
    assert (diff.added, diff.removed) == (5000, 5000)
    assert diff.text.splitlines()[2:4] == ["@@ -1,5001 +1,5001 @@", " same"]


def applied(old: list[str], diff: str) -> list[str]:
    """What a reader of the diff would make of the old rows."""
    result: list[str] = []
    at = 0
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            first, _, count = line.split()[1][1:].partition(",")
            start = int(first) - (count != "0")
            result += old[at:start]
            at = start
        elif line.startswith("+"):
            result.append(line[1:])
        else:
            assert old[at] == line[1:]
            at += 1
            if line.startswith(" "):
                result.append(line[1:])
    return result + old[at:]


@settings(deadline=None)
@given(before=few, after=few)
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str) -> None:
    diff = unified_diff(before, after, old_name="a", new_name="b")
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if before == after:
        assert diff.text == ""
        return
    assert "".join(applied(old, diff.text)) == after
    assert len(new) - len(old) == diff.added - diff.removed
    assert diff.text.count("\n") <= 20 + len(list(difflib.ndiff(old, new)))


def test_a_long_text_is_cut_on_a_line_and_says_how_much_is_left() -> None:
    assert shorten("aa\nbb\ncc\n", 7) == "aa\nbb\n… 1 more lines\n"
    assert shorten("aa\nbb", 10) == "aa\nbb"
