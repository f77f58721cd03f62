"""Long answers are split into messages that a platform accepts."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.surfaces.gateway.chunks import Counting, count_units, split_text

COUNTINGS: tuple[Counting, ...] = ("characters", "utf16", "bytes")
# One character of several code points.
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WORDS = st.sampled_from(
    ["word", "`code span`", "[a link](https://example.org/x)", "**bold text**", "😀", FAMILY, "é",
     "https://example.org/a/b?c=d", "&amp;", "🇩🇪", "_slanted_"]
)  # fmt: skip
LINES = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
BLOCKS = st.lists(st.text("ab()=_ ", max_size=30), max_size=15).map(
    lambda lines: "```python\n" + "\n".join(lines) + "\n```"
)
TEXTS = st.lists(st.one_of(LINES, BLOCKS), min_size=1, max_size=12).map("\n".join)


def without_marks(parts: tuple[str, ...]) -> str:
    """What a reader gets, without suffixes, fences and white space."""
    if len(parts) > 1:
        parts = tuple(re.sub(r"\s\(\d+/\d+\)$", "", part) for part in parts)
    return re.sub(r"```(python)?|\s", "", "".join(parts))


@given(TEXTS, st.integers(60, 400), st.sampled_from(COUNTINGS))
@example("```python\n\n\n```", 60, "bytes")
def test_nothing_is_lost_and_every_part_fits(text: str, limit: int, counting: Counting) -> None:
    parts = split_text(text, limit, counting)
    assert without_marks(parts) == without_marks((text,))
    assert all(count_units(part, counting) <= limit for part in parts)
    assert all(part.strip() for part in parts) or not text.strip()


@given(TEXTS, st.integers(100, 400))
def test_code_blocks_are_closed_in_every_part(text: str, limit: int) -> None:
    for part in split_text(text, limit):
        assert part.count("```") % 2 == 0


@given(st.lists(LINES, min_size=1, max_size=20).map("\n".join), st.integers(80, 300))
def test_no_span_link_or_character_is_split(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    for piece in (
        "`code span`",
        "[a link](https://example.org/x)",
        "**bold text**",
        FAMILY,
        "🇩🇪",
    ):
        assert sum(part.count(piece) for part in parts) == text.count(piece)


@given(st.text(max_size=600), st.integers(30, 90), st.sampled_from(COUNTINGS))
def test_any_text_can_be_split(text: str, limit: int, counting: Counting) -> None:
    parts = split_text(text, limit, counting)
    assert all(count_units(part, counting) <= limit for part in parts)


@pytest.mark.parametrize("counting", COUNTINGS)
def test_a_text_that_fits_stays_as_it_is(counting: Counting) -> None:
    text = "x" * 100
    assert split_text(text, 100, counting) == (text,)
    assert split_text("", 100, counting) == ()


def test_parts_are_numbered_and_end_at_lines() -> None:
    text = "\n".join(f"line {n} of the text" for n in range(20))
    parts = split_text(text, 100)
    assert parts[0].endswith(f" (1/{len(parts)})")
    assert all(re.fullmatch(r"line \d+ of the text", p.splitlines()[0]) for p in parts)


def test_a_block_that_fits_one_message_is_moved_as_a_whole() -> None:
    block = "```sh\n" + "\n".join(["make all"] * 6) + "\n```"
    parts = split_text("Some words before.\n" * 3 + block, 100)
    assert any(block in part for part in parts)


def test_a_longer_block_is_opened_again_with_its_language() -> None:
    text = "```python\n" + "\n".join(f"x{n} = {n}" for n in range(60)) + "\n```"
    parts = split_text(text, 120)
    assert len(parts) > 3
    assert all(part.startswith("```python\n") for part in parts)


def test_utf16_counts_an_emoji_twice() -> None:
    assert count_units("😀a", "utf16") == 3
    parts = split_text("😀" * 100, 50, "utf16")
    assert max(count_units(part, "utf16") for part in parts) <= 50
    assert sum(part.count("😀") for part in parts) == 100


def test_a_very_long_text_is_split_quickly() -> None:
    text = "word `code` [a](b) " * 20_000
    begun = time.process_time()
    split_text(text, 4096, "utf16")
    assert time.process_time() - begun < 5
