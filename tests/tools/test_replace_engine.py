"""The strategies that find a text, from exact to approximate."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.core.errors import ToolError
from hermes.tools.edits.replace import find, replacements
from hermes.tools.edits.strategies import excerpts
from hermes.tools.edits.text import apply_splices


def replaced(text: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, str]:
    found = find(text, old, replace_all=replace_all)
    assert found is not None
    return found.strategy, apply_splices(text, replacements(text, old, new, found))


def test_blanks_at_line_ends_are_forgiven() -> None:
    assert replaced("a = 1  \nb = 2\n", "a = 1\nb = 2\n", "c\n") == ("line-trimmed", "c\n")


def test_runs_of_blanks_are_forgiven_within_a_line() -> None:
    assert replaced("x = f(a,   b)  # y\n", "f(a, b)", "g(a)") == (
        "whitespace-normalised",
        "x = g(a)  # y\n",
    )


def test_tabs_for_spaces_are_forgiven_and_kept() -> None:
    text = "def f():\n\tif x:\n\t\treturn 1\n"
    old = "    if x:\n        return 1\n"
    new = "    if y:\n        return 2\n            # deep\n"
    assert replaced(text, old, new) == (
        "whitespace-normalised",
        "def f():\n\tif y:\n\t\treturn 2\n\t\t\t# deep\n",
    )


def test_another_depth_is_forgiven_and_the_new_text_gets_the_depth_of_the_file() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    old = "def f(self):\n    return 1"
    new = "def f(self):\n    if self:\n        return 2\n    return 3"
    assert replaced(text, old, new)[1] == (
        "class A:\n    def f(self):\n        if self:\n            return 2\n        return 3\n"
    )
    more = "def f(self):\n    return 2\n\ndef g(self):\n    return 3"
    assert replaced(text, old, more)[1] == (
        "class A:\n    def f(self):\n        return 2\n\n    def g(self):\n        return 3\n"
    )


def test_a_flat_block_is_found_at_any_depth() -> None:
    assert replaced("if x:\n    a()\n    b()\n", "a()\nb()\n", "c()\nd()\n") == (
        "indentation-flexible",
        "if x:\n    c()\n    d()\n",
    )


def test_a_first_line_copied_without_its_indentation_moves_nothing_else() -> None:
    text = "class A:\n    def f(self):\n        return  1\n"
    old, new = "def f(self):\n        return 1", "def f(self):\n        return 2\n    y = 1"
    assert replaced(text, old, new)[1] == (
        "class A:\n    def f(self):\n        return 2\n    y = 1\n"
    )


def test_text_that_was_written_too_deep_moves_out() -> None:
    text = "if x:\n    a()\n    b()\n"
    old = "            a()\n            b()\n"
    assert replaced(text, old, "            c()\n        d()\n") == (
        "whitespace-normalised",
        "if x:\n    c()\nd()\n",
    )


def test_escapes_that_are_one_too_many_are_undone_on_both_sides() -> None:
    text = 'print("a")\nprint("b")\n'
    assert replaced(text, 'print(\\"a\\")\\nprint(\\"b\\")', 'print(\\"c\\\\n\\")') == (
        "escape-normalised",
        'print("c\\n")\n',
    )


def test_an_escaped_old_text_with_a_plain_new_text_is_refused() -> None:
    text = 'print("a")\nprint("b")\n'
    found = find(text, 'print(\\"a\\")\\nprint(\\"b\\")')
    assert found is not None
    with pytest.raises(ToolError, match="once too often"):
        replacements(text, 'print(\\"a\\")\\nprint(\\"b\\")', 'print("c\\n")\n', found)


def test_blank_edges_are_forgiven_on_both_sides() -> None:
    assert replaced("x = [1, 2]\n", "\n\n[1, 2]\n\n", "\n\n[3]\n\n") == (
        "trimmed-boundary",
        "x = [3]\n",
    )


def test_typographic_signs_equal_plain_ones() -> None:
    assert replaced("say “it’s” – now…\n", 'say "it\'s" - now...', "done") == (
        "unicode-normalised",
        "done\n",
    )
    assert replaced("cafe\u0301 ole\n", "café ole", "tea")[1] == "tea\n"


def test_half_of_a_folded_letter_is_no_match() -> None:
    assert find("wait…\n", "wait..") is None


def test_a_block_is_known_by_its_ends_and_a_similar_middle() -> None:
    text = "def f():\n    total = compute(a, b)\n    log(total)\n    return total\n\nother()\n"
    old = "def f():\n    total = compute(a, c)\n    log(totals)\n    return total\n"
    assert replaced(text, old, "def f():\n    return 0\n") == (
        "block-anchor",
        "def f():\n    return 0\n\nother()\n",
    )


def test_a_block_is_known_by_mostly_similar_lines() -> None:
    text = "start_here(1)\nalpha\nbeta\ngamma\nfinish_here(1)\n\nrest\n"
    old = "start_here(2)\nalpha\nbeta\nsomething else\nfinish_here(2)\n"
    assert replaced(text, old, "new\n") == ("context-aware", "new\n\nrest\n")


def test_a_short_text_is_never_matched_by_similarity() -> None:
    assert find("return value_1\n", "return value_2") is None
    assert find("a_long_line_1\nb_long_line_1\n", "a_long_line_2\nb_long_line_2\n") is None


def test_what_is_only_similar_is_not_replaced_everywhere() -> None:
    text = "def f():\n    total = compute(a, b)\n    return total\n"
    old = "def f():\n    total = compute(a, c)\n    return total\n"
    assert find(text, old) is not None
    assert find(text, old, replace_all=True) is None


def test_strange_backslashes_are_not_written_into_a_file() -> None:
    text = "start()\nx = 'a'\ny = 20\nend()\n"
    old = "start()\nx = \\'a\\'\ny = 21\nend()\n"
    found = find(text, old)
    assert found is not None
    assert found.is_approximate
    with pytest.raises(ToolError, match="extra backslashes"):
        replacements(text, old, "start()\nx = \\'b\\'\nend()\n", found)


def test_a_missing_last_newline_stays_missing() -> None:
    assert replaced("a\nb", "a\nb\n", "c\n") == ("line-trimmed", "c")


def test_several_places_are_all_found() -> None:
    found = find("a b\nx\na b\n", "a  b")
    assert found is not None
    assert len(found.spans) == 2


def test_excerpts_show_the_nearest_places_with_numbers() -> None:
    text = "import os\n\ndef load_settings(path):\n    return open(path)\n\nx = 1\n"
    assert excerpts(text, "def load_setting(path):\n    return read(path)\n") == [
        "3|def load_settings(path):\n4|    return open(path)\n5|"
    ]
    assert excerpts(text, "completely other words") == []


letters = st.text("ab \t\n\\'x", max_size=60)


@settings(deadline=None)
@given(before=letters, old=letters.filter(bool), after=letters, new=letters)
def test_an_exact_unique_text_is_replaced_as_python_does(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    assume(text.count(old) == 1)
    assert replaced(text, old, new) == ("exact", text.replace(old, new))


@settings(deadline=None)
@given(pieces=st.lists(letters, min_size=2, max_size=5), old=letters.filter(bool), new=letters)
def test_every_exact_occurrence_is_replaced_as_python_does(
    pieces: list[str], old: str, new: str
) -> None:
    text = old.join(pieces)
    assert replaced(text, old, new, replace_all=True) == ("exact", text.replace(old, new))


def slipped(row: str, slip: int) -> str:
    """A row as a careless writer would copy it."""
    match slip:
        case 0:
            return row + "  "
        case 1:
            return row.replace(" ", "  ")
        case 2:
            return "    " + row
        case 3:
            return row.strip()
        case 4:
            return row.replace("“", '"').replace("’", "'")
        case 5:
            return row.replace('"', '\\"').replace("'", "\\'")
        case _:
            return row


indented = st.builds(
    lambda depth, words: "  " * depth + " ".join(words),
    st.integers(0, 3),
    st.lists(st.sampled_from(["alpha", "“b”", "it’s", '"c"', "'d'", "e(1,  2)"]), max_size=4),
)


@settings(deadline=None)
@given(
    rows=st.lists(indented, min_size=1, max_size=12),
    place=st.tuples(st.integers(0, 11), st.integers(1, 5)),
    slip=st.integers(0, 6),
    new=st.text("xy z\n", max_size=10),
)
def test_nothing_outside_of_what_was_found_changes(
    rows: list[str], place: tuple[int, int], slip: int, new: str
) -> None:
    text = "".join(row + "\n" for row in rows)
    start = place[0] % len(rows)
    old = "\n".join(slipped(row, slip) for row in rows[start : start + place[1]])
    found = find(text, old) if old else None
    if found is None:
        return
    try:
        splices = replacements(text, old, new, found)
    except ToolError:
        return
    end = 0
    for splice, span in zip(splices, found.spans, strict=True):
        assert (splice.start, splice.end) == (span.start, span.end)
        assert end <= splice.start < splice.end <= len(text)
        end = splice.end
    result = apply_splices(text, splices)
    assert result.startswith(text[: splices[0].start])
    assert result.endswith(text[splices[-1].end :])


def _render(rows: list[tuple[int, str]], unit: str, base: int) -> str:
    return "\n".join(unit * (base + depth) + text for depth, text in rows)


def _block(chance: random.Random) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """A block of code, and the same with a nested piece inside."""
    rows, depth = [(0, "if alpha:")], 1
    for number in range(chance.randint(1, 4)):
        rows.append((depth, f"call{number}()"))
        if chance.random() < 0.4:
            rows += [(depth, f"if beta{number}:"), (depth + 1, f"inner{number}()")]
            depth += 1
        elif depth > 1 and chance.random() < 0.4:
            depth -= 1
    at = chance.randint(1, len(rows))
    inside = rows[at - 1][0] + rows[at - 1][1].endswith(":")
    nested = [(inside, "for x in y:"), (inside + 1, "while z:"), (inside + 2, "deep()")]
    tail = [(0, "tail()")] if chance.random() < 0.3 else []
    return rows, [*rows[:at], *nested, *rows[at:], *tail]


@pytest.mark.parametrize("seed", range(20))
def test_new_text_gets_the_indentation_of_the_file_whatever_the_model_used(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        rows, more = _block(chance)
        (unit, base), (own, depth) = (
            (chance.choice(["    ", "  ", "\t"]), chance.randint(0, 3)) for _ in range(2)
        )
        old, new = _render(rows, own, depth), _render(more, own, depth)
        if chance.random() < 0.3:
            # The first line was copied without its indentation.
            old, new = old.lstrip(), new.lstrip()
        text = f"x = 0\n{_render(rows, unit, base)}\nend = 1\n"
        found = find(text, old)
        assert found is not None
        if found.strategy != "exact":
            wanted = f"x = 0\n{_render(more, unit, base)}\nend = 1\n"
            assert replaced(text, old, new)[1] == wanted, (text, old, new)


def test_a_block_with_a_line_too_few_is_indented_by_the_lines_that_match() -> None:
    body = "".join(f"        {name}()\n" for name in ("one", "two", "three", "four"))
    text = f"class A:\n    def f(self):\n{body}        return 5\n"
    old = "def f(self):\n  one()\n  two()\n  three()\n  return 5"
    new = "def f(self):\n  if ready:\n    one()\n  return 5"
    wanted = "class A:\n    def f(self):\n        if ready:\n            one()\n        return 5\n"
    assert replaced(text, old, new)[1] == wanted
