"""Device flows: the user enters a code in a browser (RFC 8628, and the variant of Codex)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.world import Clock
from hermes.credentials.oauth.logins import Login
from hermes.credentials.oauth.screen import LoginScreen, login_failed
from hermes.credentials.oauth.tokens import (
    UNREACHABLE,
    OAuthErrorResponse,
    TokenSet,
    as_number,
    parse_tokens,
    post,
    request_tokens,
)
from hermes.providers.http import HttpClient

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER_SECONDS = 5.0
_CODEX_SECONDS = 900.0
# Errors after which polling continues.
_PENDING = frozenset(("authorization_pending", UNREACHABLE, "malformed"))

Poll = Callable[[], Awaitable[JsonObject | OAuthErrorResponse]]


class DeviceCode(Value):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float = 900.0
    interval: float = 5.0


async def device_login(
    login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock
) -> TokenSet:
    """Waits until the user has approved; raises ProviderError on failure or timeout."""
    scope = {"scope": login.scope} if login.scope else {}
    client = login.token_endpoint().client_fields()
    answer = await post(http, login.device_url, {**client, **scope})
    if isinstance(answer, OAuthErrorResponse):
        raise login_failed(login, answer.message)
    try:
        code = convert(DeviceCode, answer, lenient=True)
    except DecodeError as error:
        raise login_failed(login, f"its answer is malformed ({error})") from error
    screen.show_code(
        code.verification_uri,
        code.user_code,
        whole_url=code.verification_uri_complete,
        seconds=code.expires_in,
    )
    fields = {**client, "grant_type": _GRANT, "device_code": code.device_code}

    async def poll() -> JsonObject | OAuthErrorResponse:
        return await post(http, login.token_url, fields)

    found = await _poll_until_done(
        login, poll, interval=code.interval, seconds=code.expires_in, clock=clock
    )
    tokens = parse_tokens(found, now=clock.now(), account_claim=login.account_claim)
    return _require_tokens(login, tokens)


async def codex_login(
    login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock
) -> TokenSet:
    """A device flow that returns an authorization code with its verifier instead of tokens."""
    base = f"{login.issuer}/api/accounts/deviceauth"
    answer = await post(http, f"{base}/usercode", {"client_id": login.client_id}, body="json")
    if isinstance(answer, OAuthErrorResponse):
        raise login_failed(login, answer.message)
    user_code, device = answer.get("user_code"), answer.get("device_auth_id")
    if not isinstance(user_code, str) or not isinstance(device, str):
        raise login_failed(login, "its answer is malformed")
    page = f"{login.issuer}/codex/device"
    screen.show_code(page, user_code, whole_url="", seconds=_CODEX_SECONDS)
    fields = {"device_auth_id": device, "user_code": user_code}

    async def poll() -> JsonObject | OAuthErrorResponse:
        found = await post(http, f"{base}/token", fields, body="json")
        if isinstance(found, OAuthErrorResponse) and found.status in (403, 404):
            return OAuthErrorResponse(code="authorization_pending")
        return found

    found = await _poll_until_done(
        login,
        poll,
        interval=as_number(answer.get("interval")) or 5.0,
        seconds=_CODEX_SECONDS,
        clock=clock,
    )
    fields = {
        "grant_type": "authorization_code",
        "code": str(found.get("authorization_code", "")),
        "code_verifier": str(found.get("code_verifier", "")),
        "redirect_uri": login.redirect_uri,
    }
    endpoint = replace(login.token_endpoint(), body="form")
    return _require_tokens(
        login, await request_tokens(endpoint, fields, http=http, now=clock.now())
    )


async def _poll_until_done(
    login: Login, poll: Poll, *, interval: float, seconds: float, clock: Clock
) -> JsonObject:
    """Polls until the answer is no longer pending."""
    until = clock.monotonic() + seconds
    while clock.monotonic() + interval <= until:
        await clock.sleep(interval)
        answer = await poll()
        if not isinstance(answer, OAuthErrorResponse):
            return answer
        if answer.code == "slow_down":
            interval += _SLOWER_SECONDS
        elif answer.code == "access_denied":
            raise login_failed(login, "it was denied")
        elif answer.code == "expired_token":
            break
        elif answer.code not in _PENDING:
            raise login_failed(login, answer.message)
    raise login_failed(login, "the code was not used in time")


def _require_tokens(login: Login, found: TokenSet | OAuthErrorResponse) -> TokenSet:
    if isinstance(found, OAuthErrorResponse):
        raise login_failed(login, found.message)
    return found
