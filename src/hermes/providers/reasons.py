"""Patterns of provider failures, with cause and advice for each."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes.core.errors import Reason

RETRYABLE: frozenset[Reason] = frozenset(
    (
        "rate_limit",
        "upstream_rate_limit",
        "overloaded",
        "server_error",
        "timeout",
        "cut",
        "unknown",
    )
)


class FailurePattern(NamedTuple):
    """Matches when the status is one of `statuses` (empty: any) and `words` is found in the
    body."""

    reason: Reason
    statuses: tuple[int, ...]
    words: str = ""

    def matches(self, status: int | None, body: str) -> bool:
        if self.statuses and status not in self.statuses:
            return False
        return re.search(self.words, body, re.IGNORECASE) is not None


FAILURE_PATTERNS = (
    FailurePattern(
        "billing",
        (),
        r"insufficient[ _](?:credits?|quota|funds|balance)|payment required|credit balance is too"
        r" low|exceeded your current quota|billing_(?:error|not_active|hard_limit)|out of credits"
        r"|requires more credits",
    ),
    FailurePattern("billing", (402,)),
    FailurePattern(
        "image_too_large",
        (),
        r"image (?:exceeds|is too large|too large|size|dimensions? exceed)|image_too_large"
        r"|images?.{0,30}exceeds?.{0,30}(?:size|limit|pixels|mb\b)",
    ),
    FailurePattern("payload_too_large", (413,)),
    FailurePattern(
        "payload_too_large", (), r"request_too_large|payload too large|request entity too large"
    ),
    FailurePattern(
        "context_overflow",
        (),
        r"context[ _](?:length|window|size|limit)|prompt is too long|max_model_len|n_ctx"
        r"|too many (?:input |prompt )?tokens|input is too long|maximum (?:prompt|input) length"
        r"|input length and .?max_tokens.? exceed|exceeds the available context"
        r"|reduce the length of the (?:messages|prompt|input)|string too long.{0,40}input",
    ),
    FailurePattern(
        "provider_policy_blocked",
        (),
        r"data policy|guardrail restriction|no endpoints? (?:found )?match\w* your"
        r"|privacy settings|not available in your (?:region|country)",
    ),
    FailurePattern(
        "content_policy_blocked",
        (),
        r"content[ _](?:policy|filter|management)|safety (?:system|filter|setting)"
        r"|flagged (?:as|for|by)|violat\w+ .{0,40}(?:policy|policies|guidelines)"
        r"|moderation|prompt was blocked",
    ),
    FailurePattern(
        "model_not_found",
        (),
        r"model[ _]not[ _]found|no such model|model .{0,80}(?:does not exist|not found|not"
        r" supported by)|unknown model|invalid model|not a valid model"
        r"|no endpoints found that support|does not support tools|no allowed providers",
    ),
    FailurePattern("model_not_found", (404,)),
    FailurePattern(
        "upstream_rate_limit",
        (429,),
        r"upstream|provider returned error|rate-limited by the provider|\"provider_name\"",
    ),
    FailurePattern(
        "overloaded",
        (),
        r"overloaded|at capacity|over capacity|no capacity|server is busy|too busy"
        r"|\"?code\"?:\s*\"?1305",
    ),
    FailurePattern("overloaded", (503, 529)),
    FailurePattern(
        "rate_limit",
        (),
        r"rate.?limit|try again in|resource.?exhausted|throttl|too many requests"
        r"|usage limit|quota exceeded",
    ),
    FailurePattern("rate_limit", (429,)),
    FailurePattern(
        "auth_permanent", (401, 403), r"deactivated|account .{0,30}disabled|key .{0,20}revoked"
    ),
    FailurePattern("auth", (401, 403)),
    FailurePattern(
        "auth", (), r"(?:invalid|incorrect|missing|no) (?:x-)?api.?key|authentication_error"
    ),
    FailurePattern("timeout", (408, 504, 522, 524)),
    FailurePattern(
        "format_error",
        (500, 502),
        r"invalid_request|validation error|unknown (?:parameter|field)|unsupported parameter"
        r"|unrecognized request argument|must be (?:a|an|one of) |failed to parse"
        r"|bad request|jinja|template",
    ),
    FailurePattern("server_error", (500, 502)),
    FailurePattern("server_error", (), r"internal server error|server_error|\bapi_error\b"),
    FailurePattern("format_error", (400, 405, 409, 411, 415, 422)),
)
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
    "cut": "ended the reply early",
    "unknown": "sent an invalid response",
}
