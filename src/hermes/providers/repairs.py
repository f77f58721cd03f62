"""Adapts a model's profile after refusals, for the rest of the session."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from hermes.codec.values import replace
from hermes.core.errors import ProviderError, Reason
from hermes.providers.limits import output_limit_in
from hermes.providers.profile import ModelProfile

# Optional fields of our requests.
_OPTIONAL = (
    "stream_options",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning_effort",
    "reasoning",
    "include",
    "store",
    "tool_choice",
    "thinking",
    "output_config",
    "chat_template_kwargs",
    "think",
    "enable_thinking",
    "extra_body",
    "options",
    "session_id",
    "service_tier",
    "temperature",
)
_REFUSED = (
    r"(?:unknown|unsupported|unrecognized|unexpected|invalid|extra)[^.]{0,60}?['\"`]"
    r"(?P<field>[a-z_]+)(?:\.[a-z_.]+)?['\"`]"
    r"|['\"`](?P<before>[a-z_]+)(?:\.[a-z_.]+)?['\"`][^.]{0,40}?(?:not supported|unsupported"
    r"|not permitted|not allowed|unknown|is not a valid)"
    r"|\b(?P<bare>[a-z_]+): extra inputs are not permitted"
)


class Repair(NamedTuple):
    """A profile change for errors with one of these reasons and these words. `change` returns None
    if the error text does not help."""

    reasons: tuple[Reason, ...]
    words: str
    change: Callable[[ModelProfile, str], dict[str, Any] | None]


def _set(**fields: object) -> Callable[[ModelProfile, str], dict[str, Any] | None]:
    return lambda _profile, _text: fields


def _other_field(profile: ModelProfile, text: str) -> dict[str, Any] | None:
    """Uses the newer name if the error asks for it, the older one if the newer is refused."""
    if profile.output_field == "max_tokens":
        return {"output_field": "max_completion_tokens"}
    return None if "instead" in text else {"output_field": "max_tokens"}


def _smaller_output(profile: ModelProfile, text: str) -> dict[str, Any] | None:
    named = output_limit_in(text)
    if named is None or (profile.max_output is not None and named >= profile.max_output):
        return None
    return {"max_output": named}


def _without_field(profile: ModelProfile, text: str) -> dict[str, Any] | None:
    found = re.finditer(_REFUSED, text, re.IGNORECASE)
    names = (name for match in found for name in match.groups() if name is not None)
    refused = [name for name in names if name in _OPTIONAL and name not in profile.omit]
    return {"omit": (*profile.omit, refused[0])} if refused else None


_FORMAT: tuple[Reason, ...] = ("format_error",)
_SIZE: tuple[Reason, ...] = ("format_error", "context_overflow")

REPAIRS = (
    Repair(_FORMAT, r"max_completion_tokens.{0,40}instead|'?max_tokens'? is not supported"
           r"|max_completion_tokens", _other_field),
    Repair(_FORMAT, r"invalid_encrypted_content|encrypted content|signature|thinking block"
           r"|redacted_thinking|reasoning_content|reasoning_details|reasoning. item",
           _set(replay="none")),
    Repair(("image_too_large",), "", _set(images=False)),
    Repair((*_FORMAT, "model_not_found"), r"image.{0,60}(?:not support|unsupported|not allowed)"
           r"|(?:not support|unsupported|no endpoints found).{0,60}image|image_url|vision",
           _set(images=False)),
    Repair(_SIZE, r"max_(?:completion_|output_)?tokens|completion tokens|output tokens",
           _smaller_output),
    Repair(_FORMAT, r"tool.{0,60}(?:must be|should be|expected).{0,20}string"
           r"|content.{0,40}(?:must be|should be|expected|valid).{0,20}string",
           _set(image_results=False, marks="off")),
    Repair(_FORMAT, r"surrogate|utf-?8|unicode|control character|codec can't|\\u0000|null byte",
           _set(ascii=True)),
    Repair(_FORMAT, r"grammar|json.schema|pattern|regex", _set(patterns=False)),
    Repair(_FORMAT, r"stream\w*.{0,40}(?:not supported|unsupported|not available|disabled)"
           r"|(?:not support|unsupported|does not allow).{0,20}stream(?!_options)",
           _set(streams=False)),
    Repair(_FORMAT, r"cache_control", _set(marks="off")),
    Repair(_FORMAT, r"developer", _set(developer=False)),
    Repair(_FORMAT, "", _without_field),
)  # fmt: skip


class AdaptiveProfile:
    """The current profile, shared by the provider that sends and the wrapper that learns."""

    def __init__(self, profile: ModelProfile) -> None:
        self.profile = profile
        self._tried = [profile]

    def learn(self, error: ProviderError) -> bool:
        """Returns whether the error led to a change. No profile is tried twice, so this
        terminates."""
        text = error.body or str(error)
        for repair in REPAIRS:
            if error.reason not in repair.reasons:
                continue
            if not re.search(repair.words, text, re.IGNORECASE):
                continue
            change = repair.change(self.profile, text)
            if change and self._apply(change):
                return True
        return False

    def _apply(self, change: dict[str, Any]) -> bool:
        new = replace(self.profile, **change)
        if new in self._tried:
            return False
        self._tried.append(new)
        self.profile = new
        return True
