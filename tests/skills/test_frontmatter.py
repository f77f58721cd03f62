"""The block at the top of a SKILL.md means what YAML says it means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import UsageError
from hermes.skills.frontmatter import _Unsure, quickly, read, split, thoroughly

PLAIN = """\
name: compare-options
description: Compare products and recommend one
version: "1.0"
platforms: [linux, macos]
metadata:
  hermes:
    tags: [a, b]
    requires_tools:
      - terminal
    config:
      - key: depth
        default: 3
        prompt: How deep
      - key: width
required_environment_variables:
- name: NOTION_KEY
  optional: true
"""


def test_a_plain_block_is_read_without_the_library() -> None:
    assert quickly(PLAIN) == {
        "name": "compare-options",
        "description": "Compare products and recommend one",
        "version": "1.0",
        "platforms": ["linux", "macos"],
        "metadata": {
            "hermes": {
                "tags": ["a", "b"],
                "requires_tools": ["terminal"],
                "config": [
                    {"key": "depth", "default": 3, "prompt": "How deep"},
                    {"key": "width"},
                ],
            }
        },
        "required_environment_variables": [{"name": "NOTION_KEY", "optional": True}],
    }
    assert quickly(PLAIN) == thoroughly(PLAIN)


@pytest.mark.parametrize(
    "block",
    [
        "name: x\ndescription: >\n  folded\n  text",
        "name: x\ndescription: |\n  kept\n  text",
        "name: x # remark",
        "name: 'it''s'",
        'description: "a \\"quoted\\" word"',
        "a: {b: c}",
        "a: &anchor b\nc: *anchor",
        "description: one\n  two",
        "a: yes\nb: No\nc: ~\nd: 1.5\ne: 0x10\nf: 2026-01-02",
        "a:\n- b\n-   c",
        "description: with: colon",
        "a: b\na: c",
        "\ta: b",
        "a: [b, [c]]",
        "a: -",
        "a: - b",
        "? a\n: b",
    ],
)
def test_what_is_not_plain_means_the_same_as_in_the_library(block: str) -> None:
    try:
        expected = thoroughly(block)
    except UsageError:
        with pytest.raises(UsageError):
            read(block)
        return
    assert read(block) == expected


LINES = st.lists(
    st.one_of(
        st.from_regex(
            r"[ ]{0,4}(- )?[a-z_]{1,4}:( [a-zA-Z0-9 ,.#:'\"\[\]{}|>&*!%@`~-]{0,12})?",
            fullmatch=True,
        ),
        st.from_regex(r"[ ]{0,4}- [a-zA-Z0-9 ,.#:'\"\[\]{}~-]{0,12}", fullmatch=True),
        st.sampled_from(
            ["", "  ", "# x", "a: true", "b: null", "c: 12", "d: 007", "e: [x, y]", "f: 1.2.3"]
        ),
    ),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_the_quick_way_never_disagrees_with_the_library(lines: list[str]) -> None:
    block = "\n".join(lines)
    try:
        quick = quickly(block)
    except _Unsure:
        return
    assert quick == thoroughly(block)


def test_the_block_ends_at_its_fence() -> None:
    assert split("---\r\nname: x\r\n---\r\nbody\r\n---\r\n") == ("name: x", "body\n---\n")


@pytest.mark.parametrize("text", ["", "name: x", "---\nname: x", "----\nname: x\n----\n"])
def test_a_text_without_a_block_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        split(text)


def test_an_error_names_the_line_of_the_file() -> None:
    with pytest.raises(UsageError, match="line 4 of the file"):
        read("name: x\ndescription: [a\nb: c")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        block, _ = split("---\n" + text)
        assert isinstance(read(block), dict)
    except UsageError as error:
        assert str(error)
