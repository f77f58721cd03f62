"""Token estimates: about a token per four ASCII characters, more for other scripts."""

from __future__ import annotations

import pytest

from hermes.codec.tokens import estimate_tokens, tokens_of_size


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("漢字", 3), ("\ud800", 2)],
)
def test_text_is_estimated_by_its_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_an_estimate_for_ascii_needs_only_the_length() -> None:
    assert all(estimate_tokens("x" * size) == tokens_of_size(size) for size in range(20))
