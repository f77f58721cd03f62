"""Answers look the same however they come in, in each of the three styles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.chat.inline_markdown import plain_words, settled_prefix
from hermes.surfaces.cli.chat.reply import StreamedReply, Style
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import built_in_skins
from tests.surfaces.cli.chat.test_blocks import DOCUMENTS

PLAIN = Paint(colours=False)
COLOURS = Paint(colours=True)
EXAMPLE = """\
# A **bold** title

Some *words* with `*code*` and a [link](http://x.y).

- one
- two, which is long enough to be broken

```python
def f():
    return 1
```

| name | value |
|---|---|
| a | 你好 |
"""


def shown(
    text: str, style: Style, paint: Paint = PLAIN, *, width: int = 30, size: int = 0
) -> list[str]:
    answer = StreamedReply(style, paint)
    step = size or len(text) or 1
    rows: list[str] = []
    for at in range(0, len(text), step):
        rows += answer.feed(text[at : at + step], width)
    return rows + answer.finish(width)


def test_strip_takes_the_marks_and_leaves_the_rest() -> None:
    assert shown(EXAMPLE, "strip") == [
        "A bold title",
        "",
        "Some words with `*code*` and a",
        "link (http://x.y).",
        "",
        "• one",
        "• two, which is long enough to",
        "  be broken",
        "",
        "```python",
        "def f():",
        "    return 1",
        "```",
        "",
        "name  value",
        "────  ─────",
        "a     你好",
    ]


def test_raw_leaves_everything() -> None:
    assert "\n".join(shown(EXAMPLE, "raw")) + "\n" == EXAMPLE


def test_render_without_colours_has_no_escape_sequences() -> None:
    text = "\n".join(shown(EXAMPLE, "render"))
    assert "\x1b" not in text
    assert "Some words with *code* and a" in text
    assert "• two, which is long enough to\n  be broken" in text


def test_render_with_colours_highlights_code_and_frees_it_of_fences() -> None:
    text = "\n".join(shown(EXAMPLE, "render", COLOURS))
    assert "```" not in text
    assert re.search(r"\x1b\[[0-9;]*mdef\x1b\[0m", text)
    assert "\x1b[1;36mA bold title\x1b[0m" in text
    assert "Some \x1b[3mwords\x1b[0m with \x1b[36m*code*\x1b[0m and a" in text


def test_render_frames_code_and_tables() -> None:
    assert shown(EXAMPLE, "render")[9:] == [
        "── python ────────────────────",
        "def f():",
        "    return 1",
        "──────────────────────────────",
        "",
        " name │ value",
        "──────┼───────",
        " a    │ 你好",
    ]


def test_render_wraps_the_cells_of_a_wide_table() -> None:
    table = "| name | words |\n|---|---|\n| first | a `long` cell that does **not** fit |"
    assert shown(table, "render", width=24) == [
        " name  │ words",
        "───────┼────────────────",
        " first │ a long cell",
        "       │ that does not",
        "       │ fit",
    ]


def test_a_table_with_too_many_columns_becomes_a_list_of_its_rows() -> None:
    head = "| " + " | ".join(f"column {n}" for n in range(6)) + " |"
    table = f"{head}\n{'|---' * 6}|\n{head}"
    assert shown(table, "render", width=30)[:2] == ["column 0: column 0", "column 1: column 1"]


def test_render_shows_boxes_quotes_and_links() -> None:
    text = "- [x] done\n- [ ] open\n\n> so *it* goes\n\n[docs](http://x.y)"
    assert shown(text, "render") == [
        "☑ done",
        "☐ open",
        "",
        "▎ so it goes",
        "",
        "docs (http://x.y)",
    ]
    assert "\x1b[4mhttp://x.y\x1b[0m" in shown(text, "render", COLOURS)[-1]


def test_a_skin_of_words_gets_no_frames() -> None:
    paint = Paint(colours=True)
    paint.apply_skin(built_in_skins()["plain"])
    text = "\n".join(shown(EXAMPLE + "\n> quoted", "render", paint))
    assert "```python" in text and "> quoted" in text
    assert not set(text) & set("│┼▎")


def test_code_of_an_unknown_language_is_left_as_it_is() -> None:
    code = "```nosuchlanguage\na  b\n\n```"
    assert shown(code, "render", COLOURS)[1:-1] == ["a  b", ""]


def test_a_piece_of_code_is_coloured_as_part_of_the_whole() -> None:
    body = ['"""', *["words in a string"] * 20, '"""', "x = 1"]
    rows = shown("```python\n" + "\n".join(body) + "\n```", "render", COLOURS, width=80)
    assert len(rows[1:-1]) == len(body)
    assert len(set(rows[2:22])) == 1


def test_unfinished_code_is_framed_and_coloured_like_finished_code() -> None:
    answer = StreamedReply("render", COLOURS)
    assert answer.feed("```python\ndef f():\n    ret", 30) == []
    tail = answer.tail(30, 8)
    assert tail[1:] == ["\x1b[35mdef\x1b[0m \x1b[34mf\x1b[0m():", "    ret"]
    assert answer.feed("urn\n```\n", 30)[:2] == tail[:2]


def test_an_unfinished_table_is_shown_row_by_row() -> None:
    answer = StreamedReply("render", PLAIN)
    assert answer.feed("| a | b |\n|---|---|\n| 1 | 2 |\n| 3", 30) == []
    assert answer.tail(30, 8) == [" a │ b", "───┼───", " 1 │ 2"]


def test_control_sequences_of_a_model_are_harmless() -> None:
    for style in ("strip", "render", "raw"):
        assert "\x1b" not in "".join(shown("a\x1b[2Jb\n\n```\n\x1b]0;x\x07\n```", style))


def test_columns_of_numbers_stand_on_the_right_where_the_table_says_so() -> None:
    table = "| name | count |\n|:---|---:|\n| 梨 | 7 |\n| apples | 12345678 |"
    assert shown(table, "strip", width=40) == [
        "name       count",
        "──────  ────────",
        "梨             7",
        "apples  12345678",
    ]


def test_a_table_that_does_not_fit_becomes_a_list_of_its_rows() -> None:
    table = "| name | words |\n|---|---|\n| first | a long cell that does not fit |\n| b | c |"
    assert shown(table, "strip", width=24) == [
        "name: first",
        "words: a long cell that",
        "  does not fit",
        "",
        "name: b",
        "words: c",
    ]


def test_the_tail_shows_what_is_not_complete() -> None:
    answer = StreamedReply("strip", PLAIN)
    assert answer.feed("first\n\nsecond **bold** and", 30) == ["first"]
    assert answer.tail(30, 5) == ["", "second bold and"]
    assert answer.tail(8, 2) == ["second", "bold and"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("**Run `make **all**` now**", "Run `make **all**` now"),
        ("2*3*4 and a_b_c", "2*3*4 and a_b_c"),
        ("__init__ is a name", "__init__ is a name"),
        ("_so_ ~~not~~ ***both***", "so not both"),
        (r"\*kept\*", "*kept*"),
        ("![alt](a.png) <https://x.y>", "alt (a.png) https://x.y"),
        ("[https://x.y](https://x.y)", "https://x.y"),
    ],
)
def test_marks_inside_a_line_go(text: str, words: str) -> None:
    assert plain_words(text) == words


@given(DOCUMENTS, st.integers(1, 7), st.integers(12, 60))
def test_the_size_of_pieces_makes_no_difference(text: str, size: int, width: int) -> None:
    for style in ("strip", "render", "raw"):
        whole = shown(text, style, width=width)
        assert shown(text, style, width=width, size=size) == whole


@given(DOCUMENTS, st.integers(24, 80))
def test_prose_stays_within_the_width(text: str, width: int) -> None:
    prose = text.replace("`", "").replace("~", "").replace("|", "")
    for style in ("strip", "render"):
        assert all(cells(row) <= width for row in shown(prose, style, COLOURS, width=width))


MARKED = st.lists(
    st.sampled_from(["*", "**", "_", "__", "`", "``", "~~", "[", "](", ")", "]", "\\", "<", ">"])
    | st.sampled_from(["word", " ", "\n", "x", "http://a.b", "!", "2", "(", "<http://x>", "你"]),
    max_size=24,
).map("".join)


@given(MARKED, st.integers(0, 80))
def test_what_is_called_stable_stays_whatever_follows(text: str, length: int) -> None:
    sure = plain_words(settled_prefix(text[:length]))
    assert plain_words(text).startswith(sure)


def test_plain_words_and_finished_marks_are_stable() -> None:
    text = "a **b** `c*` d_e 2 * 3 [x] (see) and *open"
    assert settled_prefix(text) == "a **b** `c*` d_e 2 * 3 [x] (see) and "


def test_full_rows_of_a_paragraph_do_not_wait_for_its_end() -> None:
    answer = StreamedReply("strip", PLAIN)
    assert answer.feed("one two three fo", 10) == ["one two"]
    assert answer.tail(10, 5) == ["three fo"]
    assert answer.feed("ur five **six", 10) == ["three four"]
    assert answer.tail(10, 5) == ["five **six"]
    assert answer.feed("** seven\n\nnext", 10) == ["five six", "seven"]


def test_rows_go_on_where_they_stopped_when_the_width_changes() -> None:
    answer = StreamedReply("strip", PLAIN)
    assert answer.feed("- one two three four", 10) == ["• one two", "  three"]
    assert answer.feed(" five six seven", 30) == []
    assert answer.finish(30) == ["  four five six seven"]


@given(MARKED.map(lambda text: text * 3), st.integers(1, 5), st.integers(8, 40))
def test_marks_cut_by_pieces_are_read_as_in_the_whole(text: str, size: int, width: int) -> None:
    for style in ("strip", "render"):
        whole = shown(text, style, COLOURS, width=width)
        assert shown(text, style, COLOURS, width=width, size=size) == whole


@given(MARKED)
def test_render_shows_the_words_that_strip_shows(text: str) -> None:
    """Only the backticks of code differ."""
    stripped = "".join(shown(text, "strip", width=500)).replace("`", "")
    assert "".join(shown(text, "render", width=500)).replace("`", "") == stripped
