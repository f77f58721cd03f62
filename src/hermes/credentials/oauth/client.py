"""Requests to an authorization server, and its answers: tokens or an error."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.core.errors import ProviderError
from hermes.net.http import HttpClient, ResponseContext, Timeouts

_FINAL_ERRORS = (
    "invalid_grant",
    "token_revoked",
    "token_invalidated",
    "refresh_token_reused",
    "unauthorized_client",
)
UNREACHABLE = "unreachable"
_TIMEOUTS = Timeouts(connect=5.0, read=8.0)
_WHOLE_SECONDS = 12.0
_MOST_BYTES = 256 * 1024
_SHOWN = 200


AuthMethod = Literal["client_secret_post", "client_secret_basic"]
BodyFormat = Literal["form", "json"]


class TokenEndpoint(Value):
    """A token endpoint, and how this client identifies itself there (RFC 6749 §2.3)."""

    url: str
    client_id: str = ""  # "" if the grant itself names the client
    client_secret: str = ""
    auth_method: AuthMethod = "client_secret_post"
    body: BodyFormat = "form"
    resource: str = ""  # the API that the token is for (RFC 8707)
    account_claim: tuple[str, ...] = ()  # the path of the account id in a token

    def client_fields(self) -> dict[str, str]:
        in_body = self.client_secret and self.auth_method == "client_secret_post"
        secret = {"client_secret": self.client_secret} if in_body else {}
        client = {"client_id": self.client_id} if self.client_id else {}
        return {**client, **secret}

    def form(self, grant: Mapping[str, str]) -> dict[str, str]:
        """Return the fields of a token request."""
        resource = {"resource": self.resource} if self.resource else {}
        return {**self.client_fields(), **resource, **grant}

    def client_headers(self) -> dict[str, str]:
        if not self.client_secret or self.auth_method != "client_secret_basic":
            return {}
        pair = f"{quote(self.client_id, safe='')}:{quote(self.client_secret, safe='')}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(url={self.url!r})"


class OAuthErrorResponse(Value):
    """An error answer. `code` comes from the server; "unreachable" if there was no answer."""

    code: str
    text: str = ""
    status: int = 0

    @property
    def message(self) -> str:
        return (self.text or self.code.replace("_", " ")).rstrip(".")

    @property
    def is_final(self) -> bool:
        """Whether only a new login helps. Without this, the same request may work later."""
        return self.code in _FINAL_ERRORS or (self.status == 401 and self.code != "invalid_client")


class TokenSet(Value):
    """The tokens that a token endpoint returned."""

    access_token: str
    refresh_token: str = ""
    expires_at: float | None = None  # in our clock, computed from the lifetime
    scope: str = ""
    account_id: str = ""
    url: str = ""  # the API address for the token, if not the default

    def __repr__(self) -> str:
        return f"{type(self).__name__}(expires_at={self.expires_at})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires_at", self.expires_at)]


async def request_tokens(
    endpoint: TokenEndpoint, fields: Mapping[str, str], *, http: HttpClient, now: float
) -> TokenSet | OAuthErrorResponse:
    """Send a grant (`grant_type` and its fields) to the token endpoint."""
    answer = await post(
        http,
        endpoint.url,
        endpoint.form(fields),
        body=endpoint.body,
        headers=endpoint.client_headers(),
    )
    return parse_tokens(answer, now=now, account_claim=endpoint.account_claim)


def refresh_grant(refresh_token: str) -> dict[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": refresh_token}


async def refresh_tokens(
    endpoint: TokenEndpoint, refresh_token: str, *, http: HttpClient, now: float
) -> TokenSet | OAuthErrorResponse:
    """Refresh tokens. Servers that rotate refresh tokens accept each only once."""
    tokens = await request_tokens(endpoint, refresh_grant(refresh_token), http=http, now=now)
    if isinstance(tokens, TokenSet) and not tokens.refresh_token:
        return replace(tokens, refresh_token=refresh_token)
    return tokens


async def post(
    http: HttpClient,
    url: str,
    fields: Mapping[str, str],
    *,
    body: BodyFormat = "form",
    headers: Mapping[str, str] | None = None,
) -> JsonObject | OAuthErrorResponse:
    if body == "json":
        kind, data = "application/json", encode(dict(fields))
    else:
        kind, data = "application/x-www-form-urlencoded", urlencode(fields).encode()
    sent = {"content-type": kind, "accept": "application/json", **(headers or {})}
    return await _receive(http.post(url, body=data, headers=sent, timeouts=_TIMEOUTS))


async def get(
    http: HttpClient, url: str, headers: Mapping[str, str]
) -> JsonObject | OAuthErrorResponse:
    sent = {"accept": "application/json", **headers}
    return await _receive(http.get(url, headers=sent, timeouts=_TIMEOUTS))


async def _receive(request: ResponseContext) -> JsonObject | OAuthErrorResponse:
    try:
        async with asyncio.timeout(_WHOLE_SECONDS), request as answer:
            return parse_answer(answer.status, await answer.read(_MOST_BYTES))
    except (ProviderError, TimeoutError) as error:
        return OAuthErrorResponse(code=UNREACHABLE, text=str(error) or "no answer in time")


def parse_tokens(
    answer: JsonObject | OAuthErrorResponse, *, now: float, account_claim: tuple[str, ...] = ()
) -> TokenSet | OAuthErrorResponse:
    """Parse the answer of a token endpoint."""
    if isinstance(answer, OAuthErrorResponse):
        return answer
    access = answer.get("access_token")
    if not isinstance(access, str) or not access:
        return OAuthErrorResponse(code="malformed", text="the answer has no access token")
    refresh = answer.get("refresh_token")
    id_token = answer.get("id_token")
    lifetime = as_number(answer.get("expires_in"))
    if lifetime is None:
        claims = jwt_claims(access)
        issued, expires = as_number(claims.get("iat")), as_number(claims.get("exp"))
        if issued is not None and expires is not None:
            # The difference of two server times is independent of our clock.
            lifetime = max(0.0, expires - issued)
    accounts = (find_claim(token, account_claim) for token in (id_token, access))
    scope = answer.get("scope")
    return TokenSet(
        access_token=access,
        refresh_token=refresh if isinstance(refresh, str) else "",
        expires_at=None if lifetime is None else now + lifetime,
        scope=scope if isinstance(scope, str) else "",
        account_id=next((found for found in accounts if found), ""),
    )


def jwt_claims(token: str) -> JsonObject:
    """Return the claims of a JWT, {} for other tokens. The signature is not verified: the token is
    only passed on."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return decode(dict[str, JsonValue], raw)
    except (binascii.Error, ValueError, DecodeError):
        return {}


def find_claim(token: JsonValue, path: tuple[str, ...]) -> str:
    claim: JsonValue = jwt_claims(token) if isinstance(token, str) and path else ""
    for name in path:
        claim = claim.get(name, "") if isinstance(claim, dict) else ""
    return claim if isinstance(claim, str) else ""


def parse_answer(status: int, data: bytes) -> JsonObject | OAuthErrorResponse:
    """Parse the body of an answer."""
    try:
        answer = decode(dict[str, JsonValue], data)
    except DecodeError:
        return OAuthErrorResponse(code="malformed", text=f"HTTP {status}", status=status)
    # Some servers report errors with status 200.
    if 200 <= status < 300 and "error" not in answer:
        return answer
    error = answer.get("error") or answer.get("code") or answer.get("message") or f"HTTP {status}"
    text = answer.get("error_description") or answer.get("message") or ""
    if isinstance(error, dict):
        text = error.get("message") or text
        error = error.get("code") or error.get("type") or f"HTTP {status}"
    return OAuthErrorResponse(code=str(error), text=str(text)[:_SHOWN], status=status)


def as_number(value: JsonValue) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and value.isdecimal()):
        return float(value)
    return None
