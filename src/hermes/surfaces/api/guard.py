"""Checks the framing, host, origin and token of requests."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from hermes.surfaces.api.http import Headers, HttpError
from hermes.surfaces.api.tokens import ApiClient, FailedTokens, TokenScope, TokenStore

METHODS = b"GET, POST, PATCH, DELETE, OPTIONS"
ALLOWED_HEADERS = (
    b"Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Hermes-On-Disconnect, "
    b"X-Hermes-Session-Id, X-Hermes-Session-Key"
)
EXPOSED_HEADERS = (
    b"Idempotency-Replayed, Retry-After, X-Hermes-Run-Id, X-Hermes-Session-Id, "
    b"X-Hermes-Session-Key, X-Request-Id"
)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
CHALLENGE: Headers = ((b"www-authenticate", b'Bearer realm="hermes"'),)


def is_loopback(host: str) -> bool:
    address = _parse_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class RequestGuard:
    """Checks host, origin and token of requests. `hosts` are allowed host names besides those of
    this machine. The Host header reveals a page that resolves its own name to this address (DNS
    rebinding)."""

    def __init__(
        self, tokens: TokenStore, *, host: str, hosts: tuple[str, ...], origins: tuple[str, ...]
    ) -> None:
        self._tokens = tokens
        self._failures = FailedTokens()
        self._is_local = is_loopback(host)
        self._hosts = {name.lower() for name in (*hosts, *LOOPBACK_NAMES, host)}
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def check_host(self, headers: Mapping[str, str]) -> None:
        name = _host_name(headers.get("host", ""))
        if name in self._hosts or (not self._is_local and _parse_address(name)):
            return
        raise HttpError(403, "host_not_allowed", "This host name is not allowed.")

    def cors(self, headers: Mapping[str, str]) -> Headers:
        """The CORS headers for an allowed origin; raises HttpError for any other."""
        origin = headers.get("origin")
        if origin is None:
            return ()
        if origin.lower() not in self._origins and "*" not in self._origins:
            raise HttpError(403, "origin_not_allowed", "This origin is not allowed.")
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        )

    def authenticate(
        self, headers: Mapping[str, str], scope: TokenScope | None, address: str = ""
    ) -> ApiClient:
        """The client of the token, if it has the scope. A route without a scope needs no token.
        After many wrong tokens from one address, it gets no further guesses for a while."""
        if scope is None:
            return ApiClient(name="", scopes=())
        kind, _, token = headers.get("authorization", "").partition(" ")
        client = None
        if kind.lower() == "bearer" and token.strip():
            if seconds := self._failures.wait_seconds(address, token.strip()):
                message = f"Too many wrong tokens; try again in {seconds} seconds."
                wait = ((b"retry-after", str(seconds).encode()),)
                raise HttpError(429, "too_many_failures", message, headers=wait)
            client = self._tokens.client(token.strip())
            self._failures.note(address, token.strip(), is_valid=client is not None)
        if client is None:
            message = "Send a valid token as `Authorization: Bearer …`."
            raise HttpError(401, "invalid_token", message, headers=CHALLENGE)
        if scope not in client.scopes:
            message = f"The token of {client.name!r} has no scope `{scope}`."
            raise HttpError(403, "scope_missing", message)
        return client


PREFLIGHT: Headers = (
    (b"access-control-allow-methods", METHODS),
    (b"access-control-allow-headers", ALLOWED_HEADERS),
    (b"access-control-max-age", b"600"),
)


def _host_name(host: str) -> str:
    """The host without its port and without IPv6 brackets."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def check_framing(headers: Mapping[str, str]) -> None:
    """Refuse a request that states its length twice. Proxies may read another length, so nothing
    that follows on this connection can be trusted."""
    if "content-length" in headers and "transfer-encoding" in headers:
        message = "Send either Content-Length or Transfer-Encoding, not both."
        close = ((b"connection", b"close"),)
        raise HttpError(400, "ambiguous_length", message, headers=close)
