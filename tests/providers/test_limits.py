from __future__ import annotations

import pytest

from hermes.providers.failure_patterns import output_limit_in, window_in


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (
            "The maximum context length is 32768 tokens. However, you asked for 40000",
            32768,
        ),
        ("maximum context length is 32,768 tokens", 32768),
        ("prompt is too long: 233153 tokens > 200000 maximum", 200000),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 200000),
        ("the request exceeds the available context size (n_ctx 4096)", 4096),
        ('{"n_ctx": 8192, "n_prompt_tokens": 9000}', 8192),
        ("greater than max_model_len (16384)", 16384),
        ("requested tokens exceed context window of 131072", 131072),
        ("a context window of 128k tokens", 128000),
        ("input tokens exceeds the limit of 65536", 65536),
        ("a context window of 1.5k tokens", 1500),
        ("a context window of 1.2.3k tokens", 1200),
        ("a context window of " + "9" * 5000, 99999999999999),
        ("something else is wrong", None),
        ("the context length is exceeded", None),
    ],
)
def test_the_window_is_learned_from_the_words_of_an_error(text: str, window: int | None) -> None:
    assert window_in(text) == window


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (
            "max_tokens is too large: 64000. It supports at most 16384 completion tokens",
            16384,
        ),
        ("max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens", 32000),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 11760),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("max_tokens must be less than or equal to 4096", 4096),
        ("max_output_tokens cannot exceed 8000", 8000),
        ("nothing of use", None),
    ],
)
def test_the_longest_answer_is_learned_from_the_words_of_an_error(
    text: str, output: int | None
) -> None:
    assert output_limit_in(text) == output
