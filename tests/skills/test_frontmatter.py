"""The block at the top of a SKILL.md means what YAML says it means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.errors import UsageError
from hermes.skills.skill import read_frontmatter, split_frontmatter

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


def test_a_block_is_read_as_json() -> None:
    assert read_frontmatter(PLAIN) == {
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


def test_the_block_ends_at_its_fence() -> None:
    assert split_frontmatter("---\r\nname: x\r\n---\r\nbody\r\n---\r\n") == (
        "name: x",
        "body\n---\n",
    )


@pytest.mark.parametrize("text", ["", "name: x", "---\nname: x", "----\nname: x\n----\n"])
def test_a_text_without_a_block_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        split_frontmatter(text)


def test_an_error_names_the_line_of_the_file() -> None:
    with pytest.raises(UsageError, match="line 4 of the file"):
        read_frontmatter("name: x\ndescription: [a\nb: c")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        block, _ = split_frontmatter("---\n" + text)
        assert isinstance(read_frontmatter(block), dict)
    except UsageError as error:
        assert str(error)
