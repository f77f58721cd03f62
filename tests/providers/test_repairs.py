from __future__ import annotations

from typing import Any

import pytest

from hermes.core.errors import ProviderError, Reason
from hermes.providers.profile import ModelProfile
from hermes.providers.retry import AdaptiveProfile

ROWS: list[tuple[Reason, str, dict[str, Any]]] = [
    (
        "format_error",
        "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        {"output_field": "max_completion_tokens"},
    ),
    ("format_error", "messages.1: Invalid `signature` in `thinking` block", {"replay": "none"}),
    ("format_error", '{"code": "invalid_encrypted_content"}', {"replay": "none"}),
    ("image_too_large", "image exceeds 5 MB maximum", {"images": False}),
    ("model_not_found", "No endpoints found that support image input", {"images": False}),
    ("format_error", "This model does not support image inputs", {"images": False}),
    ("format_error", "max_tokens: 64000 > 32000, which is the maximum", {"max_output": 32_000}),
    (
        "context_overflow",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        {"max_output": 11_760},
    ),
    (
        "format_error",
        "messages[3]: tool message content must be a string",
        {"image_results": False, "marks": "off"},
    ),
    ("format_error", "'utf-8' codec can't encode: surrogates not allowed", {"ascii": True}),
    ("format_error", "failed to parse grammar", {"patterns": False}),
    ("format_error", "Streaming is not supported for this model", {"streams": False}),
    ("format_error", "Unknown parameter: 'stream_options'", {"omit": ("stream_options",)}),
    ("format_error", "store: Extra inputs are not permitted", {"omit": ("store",)}),
    ("format_error", "messages.0.content.0.cache_control: not allowed", {"marks": "off"}),
    ("format_error", "invalid role 'developer'", {"developer": False}),
]  # fmt: skip
START = ModelProfile(replay="sealed", marks="native", developer=True)


def error(reason: Reason, body: str) -> ProviderError:
    return ProviderError("refused", reason=reason, status=400, body=body)


@pytest.mark.parametrize(("reason", "body", "change"), ROWS)
def test_each_refusal_teaches_one_change(reason: Reason, body: str, change: dict[str, Any]) -> None:
    adaptive = AdaptiveProfile(START)
    assert adaptive.learn(error(reason, body))
    changed = {
        name: getattr(adaptive.profile, name)
        for name in ModelProfile.__struct_fields__
        if getattr(adaptive.profile, name) != getattr(START, name)
    }
    assert changed == change


@pytest.mark.parametrize(("reason", "body", "change"), ROWS)
def test_the_same_refusal_teaches_nothing_the_second_time(
    reason: Reason, body: str, change: dict[str, Any]
) -> None:
    adaptive = AdaptiveProfile(START)
    learned = 0
    while adaptive.learn(error(reason, body)):
        learned += 1
        assert learned < 4
    assert learned >= 1


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("format_error", "messages: something is wrong"),
        ("format_error", "Unknown parameter: 'messages'"),
        ("auth", "max_completion_tokens"),
        ("context_overflow", "prompt is too long: 233153 tokens > 200000 maximum"),
    ],
)
def test_other_refusals_teach_nothing(reason: Reason, body: str) -> None:
    adaptive = AdaptiveProfile(START)
    assert not adaptive.learn(error(reason, body))
    assert adaptive.profile is START
