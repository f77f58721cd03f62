"""Answers as short Markdown, and the page that lists what can be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.providers.offline.answers import closest, guide, short_guide
from hermes.providers.offline.language import load_language
from hermes.providers.offline.plan import (
    Phrasebook,
    fence_name,
    format_size,
    inline_code,
    markdown_table,
)

SAY = Phrasebook(load_language("en"))
PAGE = Path(__file__).parents[3] / "docs" / "offline-assistant.md"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_600_000, "2.6 MB"), (250_000, "250 kB")],
)
def test_sizes_are_said_as_people_say_them(count: int, text: str) -> None:
    assert format_size(count) == text


def test_code_survives_ticks_and_line_breaks() -> None:
    assert inline_code("a b") == "`a b`"
    assert inline_code("a`b") == "`` a`b ``"
    assert inline_code("a\nb") == "`a b`"


def test_a_fence_is_longer_than_any_inside() -> None:
    assert SAY.block(["```", "x"]) == "````\n```\nx\n````"


def test_one_and_many_are_said_differently() -> None:
    assert SAY.count("lines", 1, place="x") == "One line in x."
    assert SAY.count("lines", 2, place="x") == "2 lines in x."


def test_a_cell_may_hold_a_bar() -> None:
    assert markdown_table(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |"


def test_a_fence_is_named_by_the_ending() -> None:
    assert [fence_name(name) for name in ("a.py", "a.txt", "Makefile")] == ["python", "", ""]


def test_help_shows_every_group_of_requests() -> None:
    text = short_guide(SAY)
    assert all(f"**{title}**" in text for title in load_language("en").data.groups.values())
    assert "not a language model" in text


def test_the_closest_kinds_share_rare_words_with_the_text() -> None:
    names = [kind.name for kind in closest(load_language("en"), "write a poem about the git log")]
    assert "git_log" in names
    assert closest(load_language("en"), "please show me the") == ()


def test_the_documentation_is_what_the_data_says() -> None:
    renew = "python -m hermes.providers.offline.answers > docs/offline-assistant.md"
    assert PAGE.read_text("utf-8") == guide(), f"renew it with: {renew}"


def test_the_documentation_has_every_kind_with_its_examples() -> None:
    page = guide()
    for kind in load_language("en").data.kinds:
        assert kind.title in page
        assert all(inline_code(example).replace("|", "\\|") in page for example in kind.examples)
