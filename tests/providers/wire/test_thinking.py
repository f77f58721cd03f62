from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.wire.reasoning_tags import ReasoningSplitter


def split(*chunks: str) -> tuple[str, str]:
    """The visible text and the reasoning; text that was taken back counts as reasoning."""
    splitter = ReasoningSplitter()
    text, reasoning = "", ""
    for piece in [p for chunk in chunks for p in splitter.feed(chunk)] + splitter.finish():
        if piece.kind == "text":
            text += piece.text
        elif piece.kind == "reasoning":
            reasoning += piece.text
        else:
            text, reasoning = "", reasoning + text
    return text, reasoning


CASES = [
    ("plain text", ("plain text", "")),
    ("<think>hm</think>answer", ("answer", "hm")),
    ("<think>hm</think>\n\nanswer", ("answer", "hm")),
    ("<thinking>a</thinking>b<reasoning>c</reasoning>d", ("bd", "ac")),
    ("<REASONING_SCRATCHPAD>x</REASONING_SCRATCHPAD>y", ("y", "x")),
    ("<THINK>x</think>y", ("y", "x")),
    ("Hello <think>hm</think> world", ("Hello  world", "hm")),
    ("<think>never closed", ("", "never closed")),
    ("a <b and <thin air", ("a <b and <thin air", "")),
    ("the `<think>` tag", ("the `<think>` tag", "")),
    ("```\n<think>code</think>\n```", ("```\n<think>code</think>\n```", "")),
    ("hm, so\n</think>\n\nanswer", ("answer", "hm, so\n")),
    ("x < y and y > z", ("x < y and y > z", "")),
    ("ends with <", ("ends with <", "")),
    ("ends with ``", ("ends with ``", "")),
    ("<think>a<b</think>c", ("c", "a<b")),
    ("<think>a</thin</think>c", ("c", "a</thin")),
    ("<thought>x</thought>y", ("y", "x")),
    ("<seed:think>x</seed:think>y", ("y", "x")),
    ("[THINK]x [1] y[/THINK]z", ("z", "x [1] y")),
    ("see [1] and [THI", ("see [1] and [THI", "")),
    ("◁think▷x ◁ y◁/think▷z", ("z", "x ◁ y")),
    ("<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>y<|END_RESPONSE|>", ("y", "x")),
    ("<|begin_of_thought|>x<|end_of_thought|>\n<|begin_of_solution|>y", ("y", "x")),
    ("<|channel>thought\nx<channel|>y", ("y", "x")),
    (
        "<|channel|>analysis<|message|>a < b<|end|><|start|>assistant<|channel|>final<|message|>"
        "y<|return|>",
        ("y", "a < b"),
    ),
    (
        "<|start|>assistant<|channel|>analysis<|message|>x<|end|><|start|>assistant to=f"
        "<|channel|>commentary json<|message|>{}<|call|>",
        ("<|start|>assistant to=f<|channel|>commentary json<|message|>{}<|call|>", "x"),
    ),
    ("<|channel|>commentary<|message|>I look.<|end|>", ("I look.", "")),
    ("it ends with <|end|> there", ("it ends with <|end|> there", "")),
    ("`<|channel|>final<|message|>` frames", ("`<|channel|>final<|message|>` frames", "")),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_reasoning_is_told_from_text(text: str, expected: tuple[str, str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_every_single_split_gives_the_same(text: str, expected: tuple[str, str]) -> None:
    for at in range(len(text) + 1):
        assert split(text[:at], text[at:]) == expected, text[:at]


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60), max_size=12))
def test_it_does_not_matter_where_the_text_is_split(
    case: tuple[str, tuple[str, str]], cuts: list[int]
) -> None:
    text, expected = case
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    chunks = [text[a:b] for a, b in pairwise(places)]
    assert split(*chunks) == expected
    assert split(*text) == expected


def test_no_part_of_a_tag_is_ever_shown() -> None:
    splitter = ReasoningSplitter()
    shown = [p for char in "<think>hm</think>ok" for p in splitter.feed(char) if p.kind == "text"]
    assert "".join(piece.text for piece in shown) == "ok"


def test_text_is_held_back_no_longer_than_needed() -> None:
    splitter = ReasoningSplitter()
    assert [piece.text for piece in splitter.feed("a <")] == ["a "]
    assert [piece.text for piece in splitter.feed("b")] == ["<b"]
