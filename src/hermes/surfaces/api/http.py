"""HTTP requests, responses and errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from math import ceil
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import (
    AdmissionRefused,
    ConfigError,
    DiskFull,
    Fenced,
    HermesError,
    IdempotencyConflict,
    NotFound,
    RunNotFound,
    SessionBusy,
    UsageError,
    describe_shortage,
)
from hermes.surfaces.api.tokens import ApiClient

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


def invalid_value(message: str, param: str | None) -> HttpError:
    return HttpError(400, "invalid_value", message, param=param)


def http_error(error: HermesError) -> HttpError:
    """Map a Hermes error to an HTTP error."""
    message = str(error)
    match error:
        case AdmissionRefused(is_draining=is_draining, retry_after=seconds):
            status, code = (503, "draining") if is_draining else (429, "too_many_runs")
            headers = ((b"retry-after", str(ceil(seconds)).encode()),)
            return HttpError(status, code, message, headers=headers)
        case IdempotencyConflict():
            return HttpError(409, "idempotency_key_conflict", message, param="Idempotency-Key")
        case RunNotFound():
            return HttpError(404, "run_not_found", message)
        case NotFound():
            return HttpError(404, "not_found", message)
        case UsageError():
            return HttpError(400, "invalid_value", message)
        case SessionBusy() | Fenced():
            return HttpError(409, "session_busy", message)
        case ConfigError():
            return HttpError(503, "not_configured", message, headers=NO_RETRY)
        case DiskFull():
            return HttpError(503, "disk_full", message)
        case _:
            return HttpError(500, "internal", message, headers=NO_RETRY)


def crash_error(error: BaseException) -> HttpError:
    """The error of a request that crashed: a shortage of this machine, or a bug."""
    if shortage := describe_shortage(error):
        return HttpError(503, "out_of_resources", shortage, headers=NO_RETRY)
    return HttpError(500, "internal", "Internal error; see the server log.", headers=NO_RETRY)


MAX_BODY_BYTES = 10_000_000
BODY_SECONDS = 30.0
# A client that is still sending reads the response only after its data is consumed.
DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_SECONDS = 5.0
MAX_SESSION_KEY = 256
JSON: Headers = ((b"content-type", b"application/json"),)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T", bound=Value)


class ApiResponse(Value):
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = JSON


def json_response(value: object, status: int = 200, headers: Headers = ()) -> ApiResponse:
    return ApiResponse(status=status, body=encode(value), headers=(*JSON, *headers))


class ApiRequest:
    """An HTTP request. Streaming handlers use `receive` and `send` and return no response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.path: str = scope["path"]
        self.method: str = scope["method"]
        self.headers: Mapping[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self.path_params: dict[str, str] = {}
        self.route = ""
        self.raw = b""
        self.body: Any = None
        self.client = ApiClient(name="", scopes=())

    @property
    def address(self) -> str:
        """The address of the peer, which is a proxy if one is in front."""
        peer = self.scope.get("client")
        return peer[0] if peer else ""

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.scope["query_string"].decode("latin-1"), max_num_fields=100))

    @property
    def person(self) -> str:
        """Whose memory the session uses, "" for the owner's. Each client without owner rights has
        its own, and so does each session key."""
        own = "" if self.client.is_owner else self.client.source
        return f"{self.client.source}:{self.session_key}" if self.session_key else own

    @property
    def owner_key(self) -> str:
        """The key under which conversations are stored, distinct per client and session key."""
        name = self.client.name
        return f"{name}\0{self.session_key}" if self.session_key else name

    @property
    def session_key(self) -> str:
        """The session key of the request, or "". Raises HttpError if it is too long or not
        printable."""
        key = self.headers.get("x-hermes-session-key", "")
        if len(key) > MAX_SESSION_KEY or not key.isprintable():
            message = f"A session key has at most {MAX_SESSION_KEY} printable characters."
            raise HttpError(400, "invalid_session_key", message, param="X-Hermes-Session-Key")
        return key

    def number(self, name: str, default: int, *, least: int = 0, most: int = 1_000_000) -> int:
        """A number in the query string; raises HttpError when it is invalid or out of range."""
        text = self.query.get(name)
        if text is None:
            return default
        if not text.isascii() or not text.isdecimal() or not least <= int(text[:9]) <= most:
            raise invalid_value(f"`{name}` must be a number from {least} to {most}.", name)
        return int(text[:9])

    def flag(self, name: str) -> bool:
        """A boolean in the query string, False by default."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "1", "false", "0"):
            raise invalid_value(f"`{name}` must be `true` or `false`.", name)
        return text in ("true", "1")

    async def read_body(self, kind: type[T]) -> None:
        """Read and decode the body; raise HttpError that names the limit that it exceeds."""
        self.raw = await _body(self)
        try:
            self.body = decode(kind, self.raw or b"{}")
        except DecodeError as error:
            raise _decode_error(self.raw, str(error)) from error

    async def wait_disconnect(self) -> None:
        """Wait until the client has closed the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond(self, response: ApiResponse) -> None:
        headers = [*response.headers, (b"content-length", str(len(response.body)).encode())]
        await self.send(
            {"type": "http.response.start", "status": response.status, "headers": headers}
        )
        body = b"" if self.method == "HEAD" else response.body
        await self.send({"type": "http.response.body", "body": body})


def _decode_error(raw: bytes, message: str) -> HttpError:
    try:
        value = decode(object, raw or b"{}")
    except DecodeError:
        return HttpError(400, "invalid_json", f"The body is not JSON: {message}")
    if not isinstance(value, dict):
        return HttpError(400, "invalid_json", "The body must be a JSON object.")
    # Name the parameter if possible.
    invalid = re.search(r"at `\$\.?([A-Za-z0-9_]*)", message)
    param = (invalid[1] if invalid else "") or None
    if param is None and (missing := re.search(r"missing required field `(\w+)`", message)):
        param = missing[1]
    return HttpError(400, "invalid_value", message, param=param)


async def _body(request: ApiRequest) -> bytes:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HttpError(415, "unsupported_encoding", "Send the body without a content encoding.")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:12]) > MAX_BODY_BYTES:
        raise await _too_large(request)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                event = await request.receive()
                if event["type"] == "http.disconnect":
                    raise HttpError(
                        400, "disconnected", "The client disconnected before the body was complete."
                    )
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                if size > MAX_BODY_BYTES or not event.get("more_body"):
                    break
    except TimeoutError as error:
        message = f"The body did not arrive within {BODY_SECONDS:.0f} seconds."
        raise HttpError(408, "slow_body", message, headers=((b"connection", b"close"),)) from error
    if size > MAX_BODY_BYTES:
        raise await _too_large(request)
    body = b"".join(parts)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json" and not kind.endswith("+json"):
        raise HttpError(415, "unsupported_media_type", "Send JSON, as `application/json`.")
    return body


async def _too_large(request: ApiRequest) -> HttpError:
    """Read the rest of the body (see DRAIN_BYTES) and return the error."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size < DRAIN_BYTES:
                event = await request.receive()
                size += len(event.get("body", b""))
                if event["type"] == "http.disconnect" or not event.get("more_body"):
                    break
    message = f"The body may have at most {MAX_BODY_BYTES} bytes."
    return HttpError(413, "body_too_large", message, headers=((b"connection", b"close"),))


def text_field(value: JsonObject, name: str) -> str:
    found = value.get(name, "")
    return found if isinstance(found, str) else ""
