"""Questions to an authorization server, and the tokens or refusals that it answers with."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import ProviderError
from hermes.credentials.oauth.logins import Login
from hermes.providers.http import Answer, Http, Timeouts

# After these a login is over; only the person can make a new one.
TERMINAL = frozenset(
    (
        "invalid_grant",
        "token_revoked",
        "token_invalidated",
        "refresh_token_reused",
        "unauthorized_client",
    )
)
UNREACHABLE = "unreachable"
_TIMEOUTS = Timeouts(connect=5.0, read=8.0)
_WHOLE_SECONDS = 12.0
_MOST_BYTES = 256 * 1024
_SHOWN = 200


class Refusal(Value):
    """An answer that is not what was asked for. `code` is the server's, "unreachable" when there
    was no answer."""

    code: str
    text: str = ""
    status: int = 0

    @property
    def words(self) -> str:
        return (self.text or self.code.replace("_", " ")).rstrip(".")


class Tokens(Value):
    """`expires_at` is by our clock: the server tells how long, and its clock may differ. `url` is
    where the token is good, if that is not the usual place."""

    access_token: str
    refresh_token: str = ""
    expires_at: float | None = None
    account_id: str = ""
    url: str = ""

    def __repr__(self) -> str:
        return f"Tokens(expires_at={self.expires_at})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires_at", self.expires_at)]


async def post(
    http: Http, url: str, fields: Mapping[str, str], *, body: str = "form"
) -> JsonObject | Refusal:
    """The JSON object that the server answered with."""
    if body == "json":
        kind, data = "application/json", encode(dict(fields))
    else:
        kind, data = "application/x-www-form-urlencoded", urlencode(fields).encode()
    headers = {"content-type": kind, "accept": "application/json"}
    try:
        async with (
            asyncio.timeout(_WHOLE_SECONDS),
            http.post(url, body=data, headers=headers, timeouts=_TIMEOUTS) as answer,
        ):
            return await _read(answer)
    except (ProviderError, TimeoutError) as error:
        return Refusal(code=UNREACHABLE, text=str(error) or "no answer in time")


async def get(http: Http, url: str, headers: Mapping[str, str]) -> JsonObject | Refusal:
    sent = {"accept": "application/json", **headers}
    try:
        async with (
            asyncio.timeout(_WHOLE_SECONDS),
            http.get(url, headers=sent, timeouts=_TIMEOUTS) as answer,
        ):
            return await _read(answer)
    except (ProviderError, TimeoutError) as error:
        return Refusal(code=UNREACHABLE, text=str(error) or "no answer in time")


def granted(answer: JsonObject | Refusal, login: Login, *, now: float) -> Tokens | Refusal:
    """The tokens in an answer of a token endpoint."""
    if isinstance(answer, Refusal):
        return answer
    access = answer.get("access_token")
    if not isinstance(access, str) or not access:
        return Refusal(code="malformed", text="the answer holds no access token")
    refresh = answer.get("refresh_token")
    id_token = answer.get("id_token")
    lifetime = number(answer.get("expires_in"))
    if lifetime is None:
        lifetime = _lifetime(claims(access))
    accounts = (claim(token, login.account_claim) for token in (id_token, access))
    return Tokens(
        access_token=access,
        refresh_token=refresh if isinstance(refresh, str) else "",
        expires_at=None if lifetime is None else now + lifetime,
        account_id=next((found for found in accounts if found), ""),
    )


def claims(token: str) -> JsonObject:
    """What a signed token says of itself; nothing for tokens of another kind. The signature is
    not our concern: we only carry the token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return decode(dict[str, JsonValue], raw)
    except (binascii.Error, ValueError, DecodeError):
        return {}


def claim(token: JsonValue, way: tuple[str, ...]) -> str:
    held: JsonValue = claims(token) if isinstance(token, str) and way else ""
    for name in way:
        held = held.get(name, "") if isinstance(held, dict) else ""
    return held if isinstance(held, str) else ""


async def _read(answer: Answer) -> JsonObject | Refusal:
    data = await answer.read(_MOST_BYTES)
    try:
        held = decode(dict[str, JsonValue], data)
    except DecodeError:
        return Refusal(code="malformed", text=f"HTTP {answer.status}", status=answer.status)
    # Some servers tell of errors with status 200.
    if 200 <= answer.status < 300 and "error" not in held:
        return held
    return _refusal(held, answer.status)


def _refusal(held: JsonObject, status: int) -> Refusal:
    error = held.get("error") or held.get("code") or held.get("message") or f"HTTP {status}"
    text = held.get("error_description") or held.get("message") or ""
    if isinstance(error, dict):
        text = error.get("message") or text
        error = error.get("code") or error.get("type") or f"HTTP {status}"
    return Refusal(code=str(error), text=str(text)[:_SHOWN], status=status)


def _lifetime(held: JsonObject) -> float | None:
    """From one moment of the server's clock to another, so that ours does not matter."""
    begun, over = number(held.get("iat")), number(held.get("exp"))
    return None if begun is None or over is None else max(0.0, over - begun)


def number(value: JsonValue) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and value.isdecimal():
        return float(value)
    return None
