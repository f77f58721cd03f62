"""How the wish for more or less thought is written, by the style of the model's profile."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.providers.profile import ModelProfile

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_OFF = ("false", "off", "disabled")
_BUDGETS = {"minimal": 4_000, "low": 4_000, "medium": 8_000, "high": 16_000}
_LARGEST_BUDGET = 32_000
_SMALLEST_BUDGET = 1_024
ANSWER_TOKENS = 4_096
"""What stays for the answer when the thought has a budget of its own."""


def level_of(effort: str) -> str:
    """One of LEVELS, or "" for what the provider does by itself."""
    effort = effort.strip().lower()
    if effort in _OFF:
        return "none"
    return effort if effort in LEVELS else ""


def nearest(level: str, known: tuple[str, ...]) -> str:
    """The level itself or the next stronger one that the model knows, else its strongest."""
    strong = [other for other in known if LEVELS.index(other) >= LEVELS.index(level)]
    return strong[0] if strong else known[-1]


def effort_fields(profile: ModelProfile, effort: str) -> JsonObject:
    """The top-level fields of a request, for every style but "budget" (see `budget`)."""
    level = level_of(effort)
    match profile.effort:
        case "responses":
            return _responses(profile, level)
        case "adaptive":
            return _adaptive(profile, level)
        case "envelope" if level == "none":
            return {"reasoning": {"enabled": False}}
        case "envelope" if level:
            return {"reasoning": {"enabled": True, "effort": nearest(level, profile.efforts)}}
        case "flat" if level:
            return {"reasoning_effort": nearest(level, profile.efforts)}
        case "template" if level:
            return {"chat_template_kwargs": {"enable_thinking": level != "none"}}
        case "think" if level:
            return {"think": level != "none"}
        case _:
            return {}


def budget(profile: ModelProfile, effort: str) -> int:
    """Tokens of thought in the style "budget"; 0 is none."""
    level = level_of(effort)
    if profile.effort != "budget" or level in ("", "none"):
        return 0
    wanted = _BUDGETS.get(level, _LARGEST_BUDGET)
    if profile.max_output is not None:
        wanted = min(wanted, profile.max_output - ANSWER_TOKENS)
    return wanted if wanted >= _SMALLEST_BUDGET else 0


def _responses(profile: ModelProfile, level: str) -> JsonObject:
    reasoning: JsonObject = {"summary": "auto"}
    if level:
        reasoning = {"effort": nearest(level, profile.efforts), **reasoning}
    return {"reasoning": reasoning, "include": ["reasoning.encrypted_content"]}


def _adaptive(profile: ModelProfile, level: str) -> JsonObject:
    if level in ("", "none"):
        return {}
    return {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": nearest(level, profile.efforts)},
    }
