"""The ProviderError of a scripted failure."""

from __future__ import annotations

from hermes.core.errors import ProviderError, Reason
from hermes.testing.steps import Failure
from hermes.testing.wires.errors import describe_failure

REASONS: dict[int, Reason] = {
    0: "timeout",
    400: "format_error",
    401: "auth",
    402: "billing",
    403: "auth",
    404: "model_not_found",
    413: "payload_too_large",
    429: "rate_limit",
    500: "server_error",
    502: "server_error",
    503: "overloaded",
    529: "overloaded",
}
RETRYABLE: frozenset[Reason] = frozenset(
    ("timeout", "rate_limit", "server_error", "overloaded", "cut", "unknown")
)


def provider_error(failure: Failure) -> ProviderError:
    reason = REASONS.get(failure.status, "unknown")
    if failure.limit is not None:
        reason = "context_overflow"
    return ProviderError(
        describe_failure(failure).message if failure.status else "The connection was closed.",
        reason=reason,
        status=failure.status or None,
        retryable=reason in RETRYABLE,
        retry_after=failure.retry_after,
        limit=failure.limit,
        body=failure.body or "",
    )
