from __future__ import annotations

import pytest

from hermes.codec.values import JsonObject
from hermes.providers.profile import EffortStyle, ModelProfile
from hermes.providers.wire.vendor_fields import effort_fields, level_of, reasoning_budget

GPT = ("low", "medium", "high")
OPUS_46 = ("low", "medium", "high", "max")
INCLUDE = ["reasoning.encrypted_content"]


def adaptive(effort: str) -> JsonObject:
    return {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": effort},
    }


@pytest.mark.parametrize(
    ("style", "known", "effort", "fields"),
    [
        ("none", GPT, "high", {}),
        ("responses", GPT, "", {"reasoning": {"summary": "auto"}, "include": INCLUDE}),
        (
            "responses",
            GPT,
            "minimal",
            {"reasoning": {"effort": "low", "summary": "auto"}, "include": INCLUDE},
        ),
        (
            "responses",
            GPT,
            "xhigh",
            {"reasoning": {"effort": "high", "summary": "auto"}, "include": INCLUDE},
        ),
        (
            "responses",
            ("none", *GPT),
            "off",
            {"reasoning": {"effort": "none", "summary": "auto"}, "include": INCLUDE},
        ),
        ("adaptive", OPUS_46, "", {}),
        ("adaptive", OPUS_46, "none", {}),
        ("adaptive", OPUS_46, "minimal", adaptive("low")),
        ("adaptive", OPUS_46, "xhigh", adaptive("max")),
        ("adaptive", OPUS_46, "ultra", adaptive("max")),
        ("adaptive", (*GPT, "xhigh", "max"), "xhigh", adaptive("xhigh")),
        ("envelope", GPT, "medium", {"reasoning": {"enabled": True, "effort": "medium"}}),
        ("envelope", GPT, "disabled", {"reasoning": {"enabled": False}}),
        ("envelope", GPT, "", {}),
        ("flat", GPT, "high", {"reasoning_effort": "high"}),
        ("flat", GPT, "nonsense", {}),
        ("template", GPT, "none", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("template", GPT, "low", {"chat_template_kwargs": {"enable_thinking": True}}),
        ("think", GPT, "false", {"think": False}),
        ("budget", GPT, "high", {}),
    ],
)
def test_effort_is_written_in_the_style_of_the_model(
    style: EffortStyle, known: tuple[str, ...], effort: str, fields: JsonObject
) -> None:
    assert effort_fields(ModelProfile(effort=style, efforts=known), effort) == fields


@pytest.mark.parametrize(
    ("effort", "ceiling", "tokens"),
    [
        ("low", None, 4_000),
        ("medium", None, 8_000),
        ("high", None, 16_000),
        ("xhigh", None, 32_000),
        ("ultra", None, 32_000),
        ("high", 8_192, 4_096),
        ("high", 4_200, 0),
        ("none", None, 0),
        ("", None, 0),
    ],
)
def test_a_budget_leaves_room_below_the_ceiling(
    effort: str, ceiling: int | None, tokens: int
) -> None:
    assert reasoning_budget(ModelProfile(effort="budget", max_output=ceiling), effort) == tokens


def test_unknown_levels_are_left_to_the_provider() -> None:
    assert [level_of(word) for word in ("HIGH ", "off", "very", "")] == ["high", "none", "", ""]
