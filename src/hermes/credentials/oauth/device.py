"""Logging in by a code that the person types in elsewhere (RFC 8628, and one flow of its own)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value
from hermes.core.world import Clock
from hermes.credentials.oauth.grants import client_fields
from hermes.credentials.oauth.logins import Login
from hermes.credentials.oauth.screen import Screen, login_failed
from hermes.credentials.oauth.tokens import UNREACHABLE, Refusal, Tokens, granted, number, post
from hermes.providers.http import Http

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER_SECONDS = 5.0
_CODEX_SECONDS = 900.0
# Answers that a later question may change.
_PENDING = frozenset(("authorization_pending", UNREACHABLE, "malformed"))

Poll = Callable[[], Awaitable[JsonObject | Refusal]]


class DeviceCode(Value):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float = 900.0
    interval: float = 5.0


async def device_login(login: Login, screen: Screen, *, http: Http, clock: Clock) -> Tokens:
    """Tokens, once the person has agreed; ProviderError when that does not happen in time."""
    scope = {"scope": login.scope} if login.scope else {}
    answer = await post(http, login.device_url, {**client_fields(login), **scope})
    if isinstance(answer, Refusal):
        raise login_failed(login, answer.words)
    try:
        code = convert(DeviceCode, answer, lenient=True)
    except DecodeError as error:
        raise login_failed(login, f"its answer makes no sense ({error})") from error
    screen.show_code(
        code.verification_uri,
        code.user_code,
        whole_url=code.verification_uri_complete,
        seconds=code.expires_in,
    )
    fields = {**client_fields(login), "grant_type": _GRANT, "device_code": code.device_code}

    async def poll() -> JsonObject | Refusal:
        return await post(http, login.token_url, fields)

    found = await _polled(login, poll, interval=code.interval, seconds=code.expires_in, clock=clock)
    return _tokens(login, found, clock)


async def codex_login(login: Login, screen: Screen, *, http: Http, clock: Clock) -> Tokens:
    """The device flow that gives a code and its verifier in place of tokens."""
    base = f"{login.issuer}/api/accounts/deviceauth"
    answer = await post(http, f"{base}/usercode", {"client_id": login.client_id}, body="json")
    if isinstance(answer, Refusal):
        raise login_failed(login, answer.words)
    user_code, device = answer.get("user_code"), answer.get("device_auth_id")
    if not isinstance(user_code, str) or not isinstance(device, str):
        raise login_failed(login, "its answer makes no sense")
    page = f"{login.issuer}/codex/device"
    screen.show_code(page, user_code, whole_url="", seconds=_CODEX_SECONDS)
    fields = {"device_auth_id": device, "user_code": user_code}

    async def poll() -> JsonObject | Refusal:
        found = await post(http, f"{base}/token", fields, body="json")
        if isinstance(found, Refusal) and found.status in (403, 404):
            return Refusal(code="authorization_pending")
        return found

    found = await _polled(
        login,
        poll,
        interval=number(answer.get("interval")) or 5.0,
        seconds=_CODEX_SECONDS,
        clock=clock,
    )
    exchange = {
        **client_fields(login),
        "grant_type": "authorization_code",
        "code": str(found.get("authorization_code", "")),
        "code_verifier": str(found.get("code_verifier", "")),
        "redirect_uri": login.redirect_uri,
    }
    return _tokens(login, await post(http, login.token_url, exchange), clock)


async def _polled(
    login: Login, poll: Poll, *, interval: float, seconds: float, clock: Clock
) -> JsonObject:
    """The first answer that is not "not yet"."""
    until = clock.monotonic() + seconds
    while clock.monotonic() + interval <= until:
        await clock.sleep(interval)
        answer = await poll()
        if not isinstance(answer, Refusal):
            return answer
        if answer.code == "slow_down":
            interval += _SLOWER_SECONDS
        elif answer.code == "access_denied":
            raise login_failed(login, "it was denied")
        elif answer.code == "expired_token":
            break
        elif answer.code not in _PENDING:
            raise login_failed(login, answer.words)
    raise login_failed(login, "the code was not used in time")


def _tokens(login: Login, answer: JsonObject | Refusal, clock: Clock) -> Tokens:
    found = granted(answer, login, now=clock.now())
    if isinstance(found, Refusal):
        raise login_failed(login, found.words)
    return found
