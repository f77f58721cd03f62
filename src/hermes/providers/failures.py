"""Classifies failed responses: from status and body to a ProviderError."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ProviderError, Reason
from hermes.providers.endpoint import Endpoint
from hermes.providers.failure_patterns import (
    ADVICE,
    CAUSE,
    FAILURE_PATTERNS,
    RETRYABLE,
    STATUS_BY_TYPE,
    retry_after,
    window_in,
)

WEB_PAGE = "the response is a web page, so the base URL may be wrong"
_MAX_DETAIL_CHARS = 300
_MAX_BODY_CHARS = 4_000


def classify(
    endpoint: Endpoint,
    *,
    status: int | None,
    body: str,
    headers: Mapping[str, str] | None = None,
    now: float = 0.0,
) -> ProviderError:
    """Return the error of a failed response."""
    body = _mask_key(body, endpoint)
    reason = _reason(status, body)
    limited = reason in ("context_overflow", "payload_too_large")
    return build_error(
        endpoint,
        reason,
        detail=_extract_detail(body),
        status=status,
        retry_after=retry_after(headers or {}, body, now=now) if reason in RETRYABLE else None,
        limit=window_in(body) if limited else None,
        body=body[:_MAX_BODY_CHARS],
    )


def classify_event(endpoint: Endpoint, error: JsonValue) -> ProviderError:
    """Return the error of an error object inside a response that started with status 200."""
    held: JsonObject = error if isinstance(error, dict) else {"message": str(error)}
    body = msgspec.json.encode(held).decode()
    failed = classify(endpoint, status=_status(held), body=body)
    failed.begun = True
    return failed


def malformed_response(endpoint: Endpoint, detail: str, *, body: str = "") -> ProviderError:
    """Return the error of a response with status 200 that cannot be parsed."""
    body = _mask_key(body, endpoint)[:_MAX_BODY_CHARS]
    return build_error(endpoint, "unknown", detail=detail, status=200, body=body)


def is_malformed(error: ProviderError) -> bool:
    return error.reason == "unknown" and error.status == 200


def build_error(
    endpoint: Endpoint,
    reason: Reason,
    *,
    detail: str = "",
    status: int | None = None,
    retry_after: float | None = None,
    limit: int | None = None,
    body: str = "",
) -> ProviderError:
    """Return the error with a message for a person: what happened, where, and the next step."""
    shown = detail if len(detail) <= _MAX_DETAIL_CHARS else detail[:_MAX_DETAIL_CHARS] + "…"
    where = f"{endpoint.name} ({endpoint.host}, {endpoint.model})"
    what = f"{where} {CAUSE[reason]}" + (f" (HTTP {status})" if status and status != 200 else "")
    return ProviderError(
        f"{what}{': ' + shown.rstrip('.') if shown else ''}. {ADVICE[reason]}",
        reason=reason,
        status=status,
        retryable=reason in RETRYABLE,
        retry_after=retry_after,
        limit=limit,
        body=body,
    )


def _reason(status: int | None, body: str) -> Reason:
    for reason, statuses, pattern in FAILURE_PATTERNS:
        fits = not statuses or status in statuses
        if fits and re.search(pattern, body, re.IGNORECASE):
            return reason
    if status is not None and status >= 500:
        return "server_error"
    return "format_error" if status is not None and 300 <= status < 500 else "unknown"


def _status(error: JsonObject) -> int | None:
    for name in ("status", "code", "type"):
        value = error.get(name)
        if isinstance(value, int) and 300 <= value < 600:
            return value
        if isinstance(value, str):
            if len(value) == 3 and value.isdecimal() and 300 <= int(value) < 600:
                return int(value)
            if value in STATUS_BY_TYPE:
                return STATUS_BY_TYPE[value]
    return None


def _extract_detail(body: str) -> str:
    """Return the message inside an error body; an HTML page is only named."""
    text = body.strip()
    if text.startswith("<"):
        return WEB_PAGE
    try:
        held = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return " ".join(text.split())
    return " ".join(_message(held).split())


def _message(held: JsonValue) -> str:
    if isinstance(held, str):
        return held
    if isinstance(held, list):
        return _message(held[0]) if held else ""
    if not isinstance(held, dict):
        return ""
    for name in ("error", "message", "detail", "msg", "error_description"):
        if name in held and (found := _message(held[name])):
            return found
    return ""


def _mask_key(text: str, endpoint: Endpoint) -> str:
    return text.replace(endpoint.key, "[key]") if len(endpoint.key) >= 4 else text
