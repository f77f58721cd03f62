"""The HTTP error that clients receive: a status and one JSON envelope."""

from __future__ import annotations

import re

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.errors import (
    ConfigError,
    DiskFull,
    Fenced,
    HermesError,
    NotFound,
    SessionBusy,
    UsageError,
)

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "budget_reached",
    403: "permission_error",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "payload_too_large",
    415: "invalid_request_error",
    429: "rate_limit",
    501: "not_available",
    503: "unavailable",
}
Headers = tuple[tuple[bytes, bytes], ...]
# Official clients retry any 5xx automatically; a turn that ran must not run again.
NO_RETRY: Headers = ((b"x-should-retry", b"false"),)


class HttpError(Exception):
    """Ends a request with an error status."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Headers = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.headers = headers

    @property
    def error(self) -> JsonObject:
        kind = TYPES.get(self.status)
        if kind is None:
            kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"message": str(self), "type": kind, "param": self.param, "code": self.code}

    @property
    def body(self) -> bytes:
        return encode({"error": self.error})


def http_error(error: HermesError) -> HttpError:
    """Map a Hermes error to an HTTP error."""
    words = str(error)
    match error:
        case NotFound():
            return HttpError(404, "not_found", words)
        case UsageError():
            return HttpError(400, "invalid_value", words)
        case SessionBusy() | Fenced():
            return HttpError(409, "session_busy", words)
        case ConfigError():
            return HttpError(503, "not_configured", words, headers=NO_RETRY)
        case DiskFull():
            return HttpError(503, "disk_full", words)
        case _:
            return HttpError(500, "internal", words, headers=NO_RETRY)


def invalid_body(words: str) -> HttpError:
    """The error for valid JSON with a wrong structure; names the parameter if possible."""
    place = re.search(r"at `\$\.?([A-Za-z0-9_]*)", words)
    missing = re.search(r"missing required field `(\w+)`", words)
    at_top = place is None or not place[1]
    param = missing[1] if missing and at_top else (place[1] if place and place[1] else None)
    return HttpError(400, "invalid_value", words, param=param)
