"""Markdown is cut into blocks while it is still being written."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.cli.chat.blocks import CODE_LINES, BlockSplitter, MarkdownBlock

PIECES = st.sampled_from(
    [
        "word ",
        "**bold** ",
        "# Head",
        "- item ",
        "  - inner ",
        "12. twelve ",
        "> said ",
        "| a | b |",
        "a | b",
        "---|---",
        "---",
        "```py",
        "```",
        "~~~",
        "    x = 1",
        "|",
        "\r",
        "\n",
        "\n",
        "\n\n",
        "`",
        "*",
        "你好",
    ]
)
DOCUMENTS = st.lists(PIECES, max_size=40).map("".join)


def blocks_of(*pieces: str) -> list[MarkdownBlock]:
    blocks = BlockSplitter()
    found = [block for piece in pieces for block in blocks.feed(piece)]
    return found + blocks.finish()


def shapes(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks_of(text)]


@given(DOCUMENTS, st.data())
def test_how_the_text_comes_in_pieces_makes_no_difference(text: str, data: st.DataObject) -> None:
    whole = blocks_of(text)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12).map(sorted))
    edges = [0, *cuts, len(text)]
    assert blocks_of(*(text[a:b] for a, b in pairwise(edges))) == whole
    assert blocks_of(*text) == whole


@given(DOCUMENTS)
def test_what_is_given_out_and_the_tail_are_all_there_is(text: str) -> None:
    words = re.sub("[`~\r]", "", text)
    blocks = BlockSplitter()
    given_out = "".join(block.text for block in blocks.feed(words))
    assert "".join((given_out + blocks.tail).split()) == "".join(words.split())


def test_a_paragraph_is_complete_at_the_empty_line() -> None:
    blocks = BlockSplitter()
    assert blocks.feed("one\ntwo\n") == []
    assert blocks.tail == "one\ntwo"
    assert blocks.feed("\nthree") == [MarkdownBlock(kind="text", lines=("one", "two"))]
    assert (blocks.tail, blocks.has_gap) == ("three", True)


def test_every_item_is_a_block_with_the_lines_that_belong_to_it() -> None:
    assert shapes("- one\n  more\n- two\n  1. inner") == [
        ("item", "- one\n  more"),
        ("item", "- two"),
        ("item", "  1. inner"),
    ]


def test_a_table_is_complete_when_something_else_follows() -> None:
    assert shapes("a | b\n--|--\n1 | 2\nend\n") == [
        ("table", "a | b\n--|--\n1 | 2"),
        ("text", "end"),
    ]
    assert shapes("|a|\n|-|\n|1|\n\nend") == [
        ("table", "|a|\n|-|\n|1|"),
        ("blank", ""),
        ("text", "end"),
    ]


def test_a_line_with_a_bar_is_no_table() -> None:
    assert shapes("cat x | wc\nis a pipe") == [("text", "cat x | wc\nis a pipe")]


def test_headings_rules_and_quotes_stand_alone() -> None:
    assert shapes("# A\ntext\n***\n> q\n> r") == [
        ("heading", "# A"),
        ("text", "text"),
        ("rule", "***"),
        ("quote", "> q\n> r"),
    ]


def test_code_keeps_its_lines_and_loses_its_fences() -> None:
    assert blocks_of("  ```Python x\n  a\n    b\n  ```\nend") == [
        MarkdownBlock(
            kind="code",
            lines=("a", "  b"),
            language="python",
            indent="  ",
            opens=True,
            closes=True,
        ),
        MarkdownBlock(kind="text", lines=("end",)),
    ]


def test_code_without_an_end_ends_with_the_text() -> None:
    (block,) = blocks_of("```\n# not a heading")
    assert (block.lines, block.closes) == (("# not a heading",), True)


def test_a_shorter_fence_is_part_of_the_code() -> None:
    (block,) = blocks_of("````\n```\n````")
    assert block.lines == ("```",)


def test_long_code_comes_in_pieces_that_know_what_came_before() -> None:
    lines = [str(n) for n in range(CODE_LINES + 2)]
    first, last = blocks_of("```\n" + "\n".join(lines) + "\n```")
    assert (first.lines, first.opens, first.closes) == (tuple(lines[:CODE_LINES]), True, False)
    assert (last.lines, last.opens, last.closes) == (tuple(lines[CODE_LINES:]), False, True)
    assert last.before == first.lines


def test_many_empty_lines_are_one() -> None:
    assert shapes("\n\na\n\n\n\nb\n\n") == [("text", "a"), ("blank", ""), ("text", "b")]
