"""Who may speak to the server at all: the name it was called by, the page, the token."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from hermes.surfaces.api.refusals import Headers, Refusal
from hermes.surfaces.api.tokens import Client, Scope, Tokens

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
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """`hosts` are the names that the server may be called by, besides those of this machine. A
    page that resolves its own name to this address (DNS rebinding) is told by its Host header."""

    def __init__(
        self, tokens: Tokens, *, host: str, hosts: tuple[str, ...], origins: tuple[str, ...]
    ) -> None:
        self._tokens = tokens
        self._is_local = is_loopback(host)
        self._hosts = {name.lower() for name in (*hosts, *LOOPBACK_NAMES, host)}
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)

    def check_host(self, headers: Mapping[str, str]) -> None:
        name = _host_name(headers.get("host", ""))
        if name in self._hosts or (not self._is_local and _is_address(name)):
            return
        raise Refusal(403, "host_not_allowed", "This server is not called by that name.")

    def cors(self, headers: Mapping[str, str]) -> Headers:
        """The headers for a page that may read the answer; refused for any other page."""
        origin = headers.get("origin")
        if origin is None:
            return ()
        if origin.lower() not in self._origins and "*" not in self._origins:
            raise Refusal(403, "origin_not_allowed", "Pages of that origin may not call this.")
        return (
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        )

    def client(self, headers: Mapping[str, str], scope: Scope | None) -> Client:
        """Whoever calls, if the token allows what the route is for; None is for everybody."""
        if scope is None:
            return Client(name="", scopes=())
        kind, _, token = headers.get("authorization", "").partition(" ")
        found = self._tokens.client(token.strip()) if kind.lower() == "bearer" and token else None
        if found is None:
            words = "Send a valid token as `Authorization: Bearer …`."
            raise Refusal(401, "invalid_token", words, headers=CHALLENGE)
        if scope not in found.scopes:
            words = f"The token of {found.name!r} is not for `{scope}`."
            raise Refusal(403, "scope_missing", words)
        return found


PREFLIGHT: Headers = (
    (b"access-control-allow-methods", METHODS),
    (b"access-control-allow-headers", ALLOWED_HEADERS),
    (b"access-control-max-age", b"600"),
)


def _host_name(host: str) -> str:
    """Without the port and the brackets of an IPv6 address."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
