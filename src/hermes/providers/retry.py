"""Retries requests, after a wait or with a profile adapted to the refusal."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from hermes.codec.values import replace
from hermes.core.errors import ProviderError, Reason
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import World
from hermes.providers.failure_patterns import MAX_WAIT_SECONDS, output_limit_in
from hermes.providers.failures import is_malformed
from hermes.providers.profile import ModelProfile

# A longer wait is announced before it begins.
LONG_WAIT_SECONDS = 10.0
# Optional fields of our requests.
_OPTIONAL = (
    "stream_options", "parallel_tool_calls", "prompt_cache_key", "reasoning_effort", "reasoning",
    "include", "store", "tool_choice", "thinking", "output_config", "chat_template_kwargs", "think",
    "enable_thinking", "extra_body", "options", "session_id", "service_tier", "temperature",
)  # fmt: skip
_REFUSED = (
    r"(?:unknown|unsupported|unrecognized|unexpected|invalid|extra)[^.]{0,60}?['\"`]"
    r"(?P<field>[a-z_]+)(?:\.[a-z_.]+)?['\"`]"
    r"|['\"`](?P<before>[a-z_]+)(?:\.[a-z_.]+)?['\"`][^.]{0,40}?(?:not supported|unsupported"
    r"|not permitted|not allowed|unknown|is not a valid)"
    r"|\b(?P<bare>[a-z_]+): extra inputs are not permitted"
)


class Repair(NamedTuple):
    """A profile change that may repair an error."""

    reasons: tuple[Reason, ...]  # the errors it applies to
    pattern: str  # a regular expression that the error text must contain
    # returns None if the error text does not help
    change: Callable[[ModelProfile, str], dict[str, Any] | None]


def _set(**fields: object) -> Callable[[ModelProfile, str], dict[str, Any] | None]:
    return lambda _profile, _text: fields


def _other_field(profile: ModelProfile, text: str) -> dict[str, Any] | None:
    """Use the newer name if the error asks for it, the older one if the newer is refused."""
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
        """Return whether the error led to a change. No profile is tried twice, so this
        terminates."""
        text = error.body or str(error)
        for repair in REPAIRS:
            if error.reason not in repair.reasons:
                continue
            if not re.search(repair.pattern, text, re.IGNORECASE):
                continue
            new = replace(self.profile, **(repair.change(self.profile, text) or {}))
            if new not in self._tried:
                self._tried.append(new)
                self.profile = new
                return True
        return False


_MAX_REPAIRS = 8


# Attempts while another model can take over: waiting is pointless then.
EAGER_ATTEMPTS: dict[Reason, int] = {
    "rate_limit": 1,
    "upstream_rate_limit": 1,
    "billing": 1,
    "timeout": 2,
}


class RetryMode:
    """How often and how long a model is retried. A fallback chain sets `eager` on a model while
    another one can take over from it."""

    eager = False


class RetryingProvider:
    """Repeats failed requests. `attempts` counts all requests for one reply except those after a
    repair of the profile. Rate-limit waits are announced; other retries are silent unless they
    fail. After `max_timeouts` consecutive timeouts, across turns, the next one is final."""

    def __init__(
        self,
        inner: Provider,
        world: World,
        *,
        adaptive: AdaptiveProfile | None = None,
        attempts: int = 3,
        max_timeouts: int = 5,
        mode: RetryMode | None = None,
    ) -> None:
        self._inner = inner
        self._world = world
        self._adaptive = adaptive
        self._attempts = attempts
        self._max_timeouts = max_timeouts
        self._mode = mode or RetryMode()
        self._timeouts = 0

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        attempts = repairs = 0
        streamed = False
        notices: list[Notice] = []
        while True:
            failed: ProviderError | None = None
            try:
                async with aclosing(self._inner.reply(prompt)) as stream:
                    async for item in stream:
                        streamed |= not isinstance(item, Notice)
                        yield item
            except ProviderError as error:
                failed = error
            if failed is None:
                self._timeouts = 0
                return
            repairs += 1
            if self._adaptive is None or repairs > _MAX_REPAIRS or not self._adaptive.learn(failed):
                attempts += 1
                if self._is_final(failed, attempts):
                    for notice in notices:
                        yield notice
                    raise failed
                if failed.retry_after is not None:
                    seconds = min(failed.retry_after, MAX_WAIT_SECONDS)
                else:
                    seconds = backoff(self._world, attempts, slow=is_malformed(failed))
                tries = f"{attempts + 1} of {self._attempts}"
                text = f"{failed} Retrying in {seconds:.0f} s ({tries})."
                if (failed.retry_after or 0) > MAX_WAIT_SECONDS:
                    text += f" The provider asks to wait {failed.retry_after:,.0f} s."
                is_long = seconds >= LONG_WAIT_SECONDS
                notice = Notice(text=text, kind="wait" if is_long else "lifecycle")
                if is_long or failed.reason in ("rate_limit", "upstream_rate_limit"):
                    yield notice
                else:
                    notices.append(notice)
                await self._world.clock.sleep(seconds)
            if streamed:
                streamed = False
                yield Restarted()

    def _is_final(self, error: ProviderError, attempts: int) -> bool:
        self._timeouts = self._timeouts + 1 if error.reason == "timeout" else 0
        stuck = self._timeouts >= self._max_timeouts
        most = self._attempts
        if self._mode.eager:
            most = min(most, EAGER_ATTEMPTS.get(error.reason, most))
        return stuck or not error.retryable or attempts >= most


def backoff(world: World, attempt: int, *, slow: bool) -> float:
    """Return 2, 4, 8 … 60 seconds, or 5, 10 … 120 for invalid responses, plus up to 50 % jitter."""
    first, most = (5.0, 120.0) if slow else (2.0, 60.0)
    seconds: float = min(first * 2 ** (attempt - 1), most)
    return seconds * (1 + world.chance.random() / 2)
