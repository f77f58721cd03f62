"""Replies and errors before they are written in a wire format."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.messages import Usage
from hermes.testing.steps import Failure, ScriptedCall, Step, pieces

Frame = tuple[str, JsonObject | str]
"""A stream event: its name ("" if the wire format has none) and its data."""


class DraftCall(Value):
    """A tool call in a reply."""

    # None omits the field.
    id: str | None
    name: str
    # The encoded arguments.
    text: str

    @property
    def value(self) -> JsonValue:
        """The arguments as an object, or the invalid text."""
        try:
            return decode(dict[str, JsonValue], self.text) if self.text else {}
        except DecodeError:
            return self.text


class ReplyDraft(Value):
    """A reply before it is encoded for a wire format."""

    step: Step
    n: int
    model: str
    created: int
    calls: tuple[DraftCall, ...]
    usage: Usage
    wants_usage: bool = False
    cost: float | None = None
    # Signs the reasoning.
    sealer: str = ""

    @property
    def sealed(self) -> str | None:
        """The signature of the reasoning; None without reasoning or if none is wanted."""
        if self.step.sealed is None:
            return seal(self.step.reasoning, self.sealer) if self.step.reasoning else None
        return self.step.sealed or None

    @property
    def counts(self) -> bool:
        return "no_usage" not in self.step.flaws

    def finish(self, names: dict[str, str]) -> str | None:
        """The reason for the end in the words of a wire format."""
        if "no_finish" in self.step.flaws:
            return None
        return self.step.finish or names.get(self.step.stops)

    def pieces(self, text: str) -> Iterator[str]:
        return pieces(text, self.step.pace.chunk)


def wire_json(value: JsonValue) -> bytes:
    """JSON as a server may send it: lone surrogates are escaped."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def draft_call(call: ScriptedCall, chosen_id: str, *, without_id: bool) -> DraftCall:
    text = call.raw if call.raw is not None else wire_json(call.arguments).decode()
    call_id = chosen_id if call.id is None else call.id
    return DraftCall(id=None if without_id else call_id, name=call.name, text=text)


SEAL = "seal_"


def sealer(wire: str, model: str) -> str:
    """The signer of reasoning, which is valid only for one model and wire format."""
    return f"{wire}:{model}"


def seal(text: str, by: str = "") -> str:
    """A signature that proves its signer and that the text is unchanged."""
    signed = f"{by}\n{text}".encode("utf-8", "surrogatepass")
    return SEAL + hashlib.blake2b(signed, digest_size=16).hexdigest()


# status -> (kind, code, message) of OpenAI-style endpoints
OPENAI: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "Invalid value in the request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-***."),
    402: ("insufficient_quota", "402", "Insufficient credits. Add more and try again."),
    403: ("permission_error", "403", "Your key is not allowed to use this model."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    413: ("invalid_request_error", "request_too_large", "The request body is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    500: ("server_error", "server_error", "The server had an error while processing."),
    502: ("server_error", "bad_gateway", "Bad gateway."),
    503: ("server_error", "service_unavailable", "The engine is currently overloaded."),
    529: ("server_error", "overloaded", "The model is overloaded."),
}

# status -> (kind, message) of the messages wire
ANTHROPIC: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "messages: invalid value"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the API."),
    403: ("permission_error", "Your API key does not have permission for this resource."),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your rate limit."),
    500: ("api_error", "Internal server error"),
    502: ("api_error", "Bad gateway"),
    503: ("overloaded_error", "Overloaded"),
    529: ("overloaded_error", "Overloaded"),
}

GATEWAY_PAGE = (
    "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n"
    "<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)


class ErrorTexts(NamedTuple):
    kind: str
    code: str | None
    message: str


def describe_failure(failure: Failure) -> ErrorTexts:
    """A failure with the texts of OpenAI-style endpoints."""
    kind, code, message = OPENAI.get(failure.status, ("server_error", None, "Something failed."))
    if failure.limit is not None:
        code = "context_length_exceeded"
        message = (
            f"This model's maximum context length is {failure.limit} tokens. However, your "
            f"messages resulted in {failure.limit + failure.limit // 8} tokens. "
            "Please reduce the length of the messages."
        )
    return ErrorTexts(failure.kind or kind, failure.code or code, failure.message or message)


def openai_error(failure: Failure) -> JsonObject:
    error = describe_failure(failure)
    fields = {"message": error.message, "type": error.kind, "param": None, "code": error.code}
    return {"error": fields}


def anthropic_error(failure: Failure) -> JsonObject:
    kind, message = ANTHROPIC.get(failure.status, ("api_error", "Something failed."))
    if failure.limit is not None:
        message = (
            f"prompt is too long: {failure.limit + failure.limit // 8} tokens > "
            f"{failure.limit} maximum"
        )
    error = {"type": failure.kind or kind, "message": failure.message or message}
    return {"type": "error", "error": error}


def error_bytes(failure: Failure, *, anthropic: bool) -> tuple[bytes, str]:
    """The body of an error answer and its content type."""
    if failure.body is not None:
        kind = "application/json" if failure.body[:1] in ("{", "[") else "text/html"
        return failure.body.encode("utf-8", "surrogateescape"), kind
    if failure.status == 502 and not failure.message:
        return GATEWAY_PAGE.encode(), "text/html"
    error = anthropic_error(failure) if anthropic else openai_error(failure)
    return encode(error), "application/json"


def error_headers(failure: Failure, *, anthropic: bool, now: float) -> dict[str, str]:
    """The rate limits that vendors send with a 429, and the headers of the failure."""
    headers: dict[str, str] = {}
    wait = failure.retry_after
    if wait is not None:
        headers["retry-after"] = f"{wait:g}"
    if failure.status == 429 and anthropic:
        headers["anthropic-ratelimit-requests-limit"] = "50"
        headers["anthropic-ratelimit-requests-remaining"] = "0"
        if wait is not None:
            reset = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + wait))
            headers["anthropic-ratelimit-requests-reset"] = reset
    elif failure.status == 429:
        headers["x-ratelimit-limit-requests"] = "50"
        headers["x-ratelimit-remaining-requests"] = "0"
        if wait is not None:
            headers["x-ratelimit-reset-requests"] = f"{wait:g}s"
    return headers | failure.headers
