"""Text measured in terminal cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.cli.chat.cells import cells, cut, pad, wrap

WORDS = st.text(alphabet="ab ć你好🙂e\u0301-", max_size=80)


def test_wide_characters_take_two_cells_and_colours_none() -> None:
    assert [cells(text) for text in ("ab", "你好", "🙂", "e\u0301", "\x1b[31mab\x1b[0m")] == [
        2,
        4,
        2,
        1,
        2,
    ]


def test_a_text_is_cut_between_characters() -> None:
    assert cut("你好吗", 6) == "你好吗"
    assert cut("你好吗", 5) == "你好…"
    assert cut("你好吗", 4) == "你…"
    assert cut("abc", 0) == ""


def test_padding_counts_cells() -> None:
    assert pad("你", 4) == "你  "


def test_words_stay_whole_where_they_can() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]


def test_rows_after_the_first_hang() -> None:
    assert wrap("- one two three", 8, hang="  ") == ["- one", "  two", "  three"]


def test_what_has_no_spaces_is_broken_anyway() -> None:
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap("看 中文字符", 5) == ["看 中", "文字", "符"]


def test_the_indent_of_a_line_is_kept() -> None:
    assert wrap("    x", 10) == ["    x"]
    assert wrap("", 10) == [""]


@given(WORDS, st.integers(min_value=2, max_value=30))
def test_no_row_is_too_wide_and_no_letter_is_lost(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(cells(row.rstrip()) <= width for row in rows if row.strip())
    assert "".join("".join(rows).split()) == "".join(text.split())
