"""Patterns of provider failures: reasons with cause and advice, token limits, retry times."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from hermes.core.errors import Reason

RETRYABLE: frozenset[Reason] = frozenset(
    (
        "rate_limit", "upstream_rate_limit", "overloaded", "server_error", "timeout", "cut",
        "unknown",
    )
)  # fmt: skip


class FailurePattern(NamedTuple):
    """A rule that maps an error response to a reason."""

    reason: Reason
    statuses: tuple[int, ...]  # the HTTP statuses it applies to; empty for any
    pattern: str = ""  # a regular expression that the body must contain


FAILURE_PATTERNS = (
    FailurePattern("billing", (), r"insufficient[ _](?:credits?|quota|funds|balance)"
                   r"|payment required|credit balance is too low|exceeded your current quota"
                   r"|billing_(?:error|not_active|hard_limit)|out of credits"
                   r"|requires more credits"),
    FailurePattern("billing", (402,)),
    FailurePattern("image_too_large", (), r"image (?:exceeds|is too large|too large|size"
                   r"|dimensions? exceed)|image_too_large"
                   r"|images?.{0,30}exceeds?.{0,30}(?:size|limit|pixels|mb\b)"),
    FailurePattern("payload_too_large", (413,)),
    FailurePattern("payload_too_large", (), r"request_too_large|payload too large"
                   r"|request entity too large"),
    FailurePattern("context_overflow", (), r"context[ _](?:length|window|size|limit)"
                   r"|prompt is too long|max_model_len|n_ctx|too many (?:input |prompt )?tokens"
                   r"|input is too long|maximum (?:prompt|input) length"
                   r"|input length and .?max_tokens.? exceed|exceeds the available context"
                   r"|reduce the length of the (?:messages|prompt|input)"
                   r"|string too long.{0,40}input"),
    FailurePattern("provider_policy_blocked", (), r"data policy|guardrail restriction"
                   r"|no endpoints? (?:found )?match\w* your|privacy settings"
                   r"|not available in your (?:region|country)"),
    FailurePattern("content_policy_blocked", (), r"content[ _](?:policy|filter|management)"
                   r"|safety (?:system|filter|setting)|flagged (?:as|for|by)"
                   r"|violat\w+ .{0,40}(?:policy|policies|guidelines)"
                   r"|moderation|prompt was blocked"),
    FailurePattern("model_not_found", (), r"model[ _]not[ _]found|no such model"
                   r"|model .{0,80}(?:does not exist|not found|not supported by)|unknown model"
                   r"|invalid model|not a valid model|no endpoints found that support"
                   r"|does not support tools|no allowed providers"),
    FailurePattern("model_not_found", (404,)),
    FailurePattern("upstream_rate_limit", (429,), r"upstream|provider returned error"
                   r"|rate-limited by the provider|\"provider_name\""),
    FailurePattern("overloaded", (), r"overloaded|at capacity|over capacity|no capacity"
                   r"|server is busy|too busy|\"?code\"?:\s*\"?1305"),
    FailurePattern("overloaded", (503, 529)),
    FailurePattern("rate_limit", (), r"rate.?limit|try again in|resource.?exhausted|throttl"
                   r"|too many requests|usage limit|quota exceeded"),
    FailurePattern("rate_limit", (429,)),
    FailurePattern("auth_permanent", (401, 403), r"deactivated|account .{0,30}disabled"
                   r"|key .{0,20}revoked"),
    FailurePattern("auth", (401, 403)),
    FailurePattern("auth", (), r"(?:invalid|incorrect|missing|no) (?:x-)?api.?key"
                   r"|authentication_error"),
    FailurePattern("timeout", (408, 504, 522, 524)),
    FailurePattern("format_error", (500, 502), r"invalid_request|validation error"
                   r"|unknown (?:parameter|field)|unsupported parameter"
                   r"|unrecognized request argument|must be (?:a|an|one of) |failed to parse"
                   r"|bad request|jinja|template"),
    FailurePattern("server_error", (500, 502)),
    FailurePattern("server_error", (), r"internal server error|server_error|\bapi_error\b"),
    FailurePattern("format_error", (400, 405, 409, 411, 415, 422)),
)  # fmt: skip
# HTTP status for error types that arrive without one.
STATUS_BY_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 402,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

ADVICE: dict[Reason, str] = {
    "auth": "Check the key, or choose another provider with `hermes model`.",
    "auth_permanent": "The key will not work again: get a new one from the provider.",
    "billing": "Add credits at the provider, or set a fallback provider.",
    "rate_limit": "Wait a little, or set a fallback provider.",
    "upstream_rate_limit": "Choose another model or provider for now.",
    "overloaded": "Try again in a minute.",
    "server_error": "Try again; if it persists, choose another model.",
    "timeout": "Check the network; for a local server, check that it is running.",
    "ssl_cert_verification": "Configure your network's CA bundle, or check the clock and the host.",
    "context_overflow": "Use /compress, or start over with /new.",
    "payload_too_large": "Use /compress, or start over with /new.",
    "image_too_large": "Send a smaller image.",
    "model_not_found": "Check the model's name and the base URL with `hermes model`.",
    "provider_policy_blocked": "Change the data policy at the provider, or choose another model.",
    "content_policy_blocked": "Rephrase the request, or choose another model.",
    "format_error": "Try another model; if it persists, report it.",
    "endless_reply": "Ask for less, or try another model.",
    "cut": "Try again.",
    "unknown": "Try again; if it persists, choose another model.",
}
CAUSE: dict[Reason, str] = {
    "auth": "refused the key",
    "auth_permanent": "no longer accepts the key",
    "billing": "reports that the account has no credit",
    "rate_limit": "limits the request rate",
    "upstream_rate_limit": "is rate-limited by its upstream provider",
    "overloaded": "is overloaded",
    "server_error": "had an internal error",
    "timeout": "did not respond in time",
    "ssl_cert_verification": "presented a certificate that cannot be verified",
    "context_overflow": "reports that the conversation is too long for the model",
    "payload_too_large": "reports that the request is too large",
    "image_too_large": "reports that an image is too large",
    "model_not_found": "does not know the model",
    "provider_policy_blocked": "blocks the request by its data policy",
    "content_policy_blocked": "refused the request by its content policy",
    "format_error": "did not accept the request",
    "endless_reply": "sent a reply without an end",
    "cut": "ended the reply early",
    "unknown": "sent an invalid response",
}


# Patterns are compiled on use: most runs never see such an error.
_NUMBER = r"(\d[\d,_.]{0,12}\d|\d)\s*(k\b)?"

# The number after each of these is the context window.
_WINDOW = (
    r"maximum context length (?:is|of)[^\d]{0,12}",
    r"maximum context (?:size|window) (?:is|of)?[^\d]{0,12}",
    r"context (?:length|window|size) (?:is|of)(?: only)?[^\d]{0,12}",
    r"context (?:length|window|size)[^\d]{0,6}\(?(?:n_ctx)?[^\d]{0,6}",
    r"context limit[^\d]{0,4}",
    r"max_model_len[^\d]{0,16}",
    r"n_ctx[\"']?\s*[:=(]?\s*",
    r"context_length[\"']?\s*[:=]\s*",
    r"tokens?\s*>\s*",
    r"exceeds? (?:the )?(?:limit|maximum)(?: of)?[^\d]{0,12}",
    r"limit (?:is|of)[^\d]{0,12}",
)
_MAXIMUM = r"[>≥]\s*" + _NUMBER + r"\s*maximum"

_SUM = r"\b(\d{1,12})\s*\+\s*(\d{1,12})\s*>\s*(\d{1,12})\b"
_OUTPUT = (
    r"supports at most[^\d]{0,12}",
    r"max(?:imum)?[_ ](?:completion_|output_|output |completion )?tokens?"
    r"[^\d]{0,4}\d+\s*>\s*",
    r"max_(?:completion_|output_)?tokens[^.]{0,60}?"
    r"(?:less than or equal to|at most|<=|maximum(?: value)?(?: is| of)?|cannot exceed|up to)"
    r"[^\d]{0,12}",
    r"valid range of max_tokens is \[\d+,\s*",
    r"available (?:output )?tokens?[^\d]{0,12}",
    r"maximum (?:number of )?(?:output|completion) tokens[^\d]{0,24}",
)


def window_in(text: str) -> int | None:
    """Return the context window in an overflow error."""
    if found := re.search(_SUM, text):
        return int(found[3])
    if found := re.search(_MAXIMUM, text, re.IGNORECASE):
        return _number(found)
    return _first(_WINDOW, text, least=256)


def output_limit_in(text: str) -> int | None:
    """Return the maximum output in an error about a too large `max_tokens`."""
    found = re.search(_SUM, text)
    if found and int(found[3]) > int(found[1]):
        return int(found[3]) - int(found[1])
    return _first(_OUTPUT, text, least=1)


def _first(patterns: tuple[str, ...], text: str, *, least: int) -> int | None:
    for pattern in patterns:
        found = re.search(pattern + _NUMBER, text, re.IGNORECASE)
        if found and (number := _number(found)) >= least:
            return number
    return None


def _number(match: re.Match[str]) -> int:
    digits, thousands = match[1], match[2]
    if not thousands:
        return int(re.sub(r"[,_.]", "", digits))
    whole, _, rest = re.sub(r"[,_]", "", digits).partition(".")
    return int(float(f"{whole}.{rest.partition('.')[0] or 0}") * 1000)


MAX_WAIT_SECONDS = 600.0
"""Upper bound in seconds, whatever the server asks for."""

# Patterns are compiled on use: most runs never see such an error.
_IN_WORDS = (
    r"(?:try again|retry|reset\w*|retrydelay\"?:)\s*(?:in|after)?\s*\"?"
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?)\b"
)
_DURATION = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DATES = ("%a, %d %b %Y %H:%M:%S GMT", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+00:00")
# Numbers above these are timestamps, not durations.
_EPOCH_SECONDS = 1e9
_EPOCH_MILLISECONDS = 1e12


def retry_after(headers: Mapping[str, str], text: str, *, now: float) -> float | None:
    """Return the seconds from now, or None if the server named none. Header names are in lower
    case."""
    if milliseconds := headers.get("retry-after-ms"):
        found = _span(milliseconds, now=now)
        if found is not None:
            return found / 1000
    asked = headers.get("retry-after")
    if asked and (found := _span(asked, now=now)) is not None:
        return found
    resets = [found for value in _resets(headers) if (found := _span(value, now=now)) is not None]
    if resets:
        return max(resets)
    if match := re.search(_IN_WORDS, text, re.IGNORECASE):
        unit = match[2].lower()
        key = "ms" if unit.startswith(("ms", "mil")) else unit[0]
        return float(match[1]) * _UNITS[key]
    return None


def _resets(headers: Mapping[str, str]) -> list[str]:
    """Return the reset times of exhausted limits; of all limits if none is marked as exhausted."""
    resets = {name: value for name, value in headers.items() if "ratelimit" in name}
    names = [name for name in resets if "reset" in name]
    spent = [
        name for name in names if resets.get(name.replace("reset", "remaining"), "").strip() == "0"
    ]
    return [resets[name] for name in spent or names]


def _span(value: str, *, now: float) -> float | None:
    value = value.strip()
    try:
        number = float(value)
    except ValueError:
        if re.match(_DURATION, value):
            amounts = re.findall(_DURATION, value)
            return sum(float(amount) * _UNITS[unit] for amount, unit in amounts)
        import calendar  # on demand: few servers send dates

        for form in _DATES:
            with suppress(ValueError):
                return max(0.0, calendar.timegm(time.strptime(value, form)) - now)
        return None
    if number >= _EPOCH_MILLISECONDS:
        number = number / 1000 - now
    elif number >= _EPOCH_SECONDS:
        number -= now
    return max(0.0, number) if number == number else None
