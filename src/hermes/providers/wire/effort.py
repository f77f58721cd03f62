"""Encodes the reasoning effort in the style of the model's profile."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.providers.profile import ModelProfile

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_OFF = ("false", "off", "disabled")
_BUDGETS = {"minimal": 4_000, "low": 4_000, "medium": 8_000, "high": 16_000}
_LARGEST_BUDGET = 32_000
_SMALLEST_BUDGET = 1_024
ANSWER_TOKENS = 4_096
"""Tokens reserved for the answer when reasoning has its own budget."""


def level_of(effort: str) -> str:
    """One of LEVELS, or "" for the provider's default."""
    effort = effort.strip().lower()
    if effort in _OFF:
        return "none"
    return effort if effort in LEVELS else ""


def nearest_level(level: str, known: tuple[str, ...]) -> str:
    """The level itself or the next stronger one that the model supports, else its strongest; "" if
    it supports none."""
    if not known:
        return ""
    strong = [other for other in known if LEVELS.index(other) >= LEVELS.index(level)]
    return strong[0] if strong else known[-1]


def effort_fields(profile: ModelProfile, effort: str) -> JsonObject:
    """Top-level request fields for every style except "budget" (see `budget`)."""
    level = level_of(effort)
    if profile.effort == "responses":
        return _responses(profile, level)
    if not level:
        return {}
    on, supported = level != "none", nearest_level(level, profile.efforts)
    match profile.effort:
        case "adaptive" if on:
            return _adaptive(supported)
        case "envelope" | "envelope_on" if on:
            return {"reasoning": {"enabled": True, **({"effort": supported} if supported else {})}}
        case "envelope":
            return {"reasoning": {"enabled": False}}
        case "flat" if supported:
            return {"reasoning_effort": supported}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case "enable_thinking":
            return {"enable_thinking": on}
        case "think":
            return {"think": on}
        case "toggle":
            return _toggle(on)
        case "toggle_effort":
            return _toggle(on) | ({"reasoning_effort": supported} if on and supported else {})
        case "google":
            return _google(profile, level)
        case _:
            return {}


def reasoning_budget(profile: ModelProfile, effort: str, limit: int | None = None) -> int:
    """Reasoning tokens in the style "budget"; 0 disables reasoning. They stay below `limit`, the
    maximum output of the request."""
    level = level_of(effort)
    if profile.effort != "budget" or level in ("", "none"):
        return 0
    wanted = _budget_of(level)
    for ceiling in (profile.max_output, limit):
        if ceiling is not None:
            wanted = min(wanted, ceiling - ANSWER_TOKENS)
    return wanted if wanted >= _SMALLEST_BUDGET else 0


def _budget_of(level: str) -> int:
    return _BUDGETS.get(level, _LARGEST_BUDGET)


def _responses(profile: ModelProfile, level: str) -> JsonObject:
    """A model without levels still returns encrypted reasoning, which is sent back later."""
    sealed: JsonObject = {"include": ["reasoning.encrypted_content"]}
    if not profile.efforts:
        return sealed
    reasoning: JsonObject = {"summary": "auto"}
    if level:
        reasoning = {"effort": nearest_level(level, profile.efforts), **reasoning}
    return {"reasoning": reasoning, **sealed}


def _adaptive(effort: str) -> JsonObject:
    return {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": effort},
    }


def _toggle(on: bool) -> JsonObject:
    return {"thinking": {"type": "enabled" if on else "disabled"}}


def _google(profile: ModelProfile, level: str) -> JsonObject:
    """Newer models take a level, older ones a token count; none takes both."""
    if supported := nearest_level(level, profile.efforts):
        fields: JsonObject = {"thinking_level": supported}
    else:
        fields = {"thinking_budget": 0 if level == "none" else _budget_of(level)}
    config = {"include_thoughts": level != "none", **fields}
    return {"extra_body": {"google": {"thinking_config": config}}}
