"""Login flows: device code, and browser with PKCE."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol, TypeVar
from urllib.parse import urlencode

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ConfigError, ProviderError
from hermes.core.world import Clock
from hermes.credentials.google import HOW_TO
from hermes.credentials.oauth.client import (
    UNREACHABLE,
    OAuthErrorResponse,
    TokenSet,
    as_number,
    parse_tokens,
    post,
    request_tokens,
)
from hermes.credentials.oauth.logins import (
    Login,
    discover_endpoints,
    exchange_token,
    missing_client_error,
)
from hermes.credentials.oauth.redirect import BrowserScreen, RedirectListener, listen_for_redirect
from hermes.net.http import HttpClient


class LoginScreen(BrowserScreen, Protocol):
    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        """Ask the user to open `url` and enter the code. `whole_url` already contains the code; ""
        if there is none."""
        ...


def login_failed(login: Login, why: str) -> ProviderError:
    again = f"run `hermes login {login.provider}` again"
    return ProviderError(f"The login at {login.name} failed: {why}; {again}.", reason="auth")


T = TypeVar("T")
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
    """Log in with a device code: wait until the user has approved; raise ProviderError on failure
    or timeout."""
    scope = {"scope": login.scope} if login.scope else {}
    client = login.token_endpoint().client_fields()
    answer = _require(login, await post(http, login.device_url, {**client, **scope}))
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
    return _require(login, parse_tokens(found, now=clock.now(), account_claim=login.account_claim))


async def codex_login(
    login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock
) -> TokenSet:
    """Log in with a device flow that returns an authorization code with its verifier instead of
    tokens."""
    base = f"{login.issuer}/api/accounts/deviceauth"
    client = {"client_id": login.client_id}
    answer = _require(login, await post(http, f"{base}/usercode", client, body="json"))
    user_code, device = answer.get("user_code"), answer.get("device_auth_id")
    if not isinstance(user_code, str) or not isinstance(device, str):
        raise login_failed(login, "its answer is malformed")
    page = f"{login.issuer}/codex/device"
    screen.show_code(page, user_code, whole_url="", seconds=_CODEX_SECONDS)
    fields = {"device_auth_id": device, "user_code": user_code}

    async def poll() -> JsonObject | OAuthErrorResponse:
        grant = await post(http, f"{base}/token", fields, body="json")
        if isinstance(grant, OAuthErrorResponse) and grant.status in (403, 404):
            return OAuthErrorResponse(code="authorization_pending")
        return grant

    grant = await _poll_until_done(
        login,
        poll,
        interval=as_number(answer.get("interval")) or 5.0,
        seconds=_CODEX_SECONDS,
        clock=clock,
    )
    fields = {
        "grant_type": "authorization_code",
        "code": str(grant.get("authorization_code", "")),
        "code_verifier": str(grant.get("code_verifier", "")),
        "redirect_uri": login.redirect_uri,
    }
    endpoint = replace(login.token_endpoint(), body="form")
    return _require(login, await request_tokens(endpoint, fields, http=http, now=clock.now()))


async def _poll_until_done(
    login: Login, poll: Poll, *, interval: float, seconds: float, clock: Clock
) -> JsonObject:
    """Poll until the answer is no longer pending."""
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


def _require(login: Login, result: T | OAuthErrorResponse) -> T:
    if isinstance(result, OAuthErrorResponse):
        raise login_failed(login, result.message)
    return result


_BROWSER_SECONDS = 600.0


async def browser_login(
    login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock
) -> TokenSet:
    """Log in with a browser: wait for the redirect or a pasted code; raise ProviderError."""
    # Not from World: these must be unpredictable even in a replay.
    verifier, state = _base64url(os.urandom(32)), _base64url(os.urandom(24))
    if login.redirect_uri:
        listening: AbstractAsyncContextManager[RedirectListener] = nullcontext(
            RedirectListener(login.redirect_uri, state)
        )
    else:
        listening = listen_for_redirect(state)
    async with listening as listener:
        query = {
            "response_type": "code",
            "client_id": login.client_id,
            "redirect_uri": listener.url,
            "scope": login.scope,
            "state": state,
            "code_challenge": _base64url(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        parameters = urlencode({name: value for name, value in query.items() if value})
        glue = "&" if "?" in login.authorize_url else "?"
        screen.show_page(f"{login.authorize_url}{glue}{parameters}", paste=True)
        try:
            redirect = await listener.wait(screen, _BROWSER_SECONDS)
        except TimeoutError:
            raise login_failed(login, "the browser did not return in time") from None
    if redirect.error:
        raise login_failed(login, redirect.error.replace("_", " "))
    fields = {
        "grant_type": "authorization_code",
        "code": redirect.code,
        "state": redirect.state,
        "redirect_uri": listener.url,
        "code_verifier": verifier,
    }
    tokens = await request_tokens(login.token_endpoint(), fields, http=http, now=clock.now())
    return _require(login, tokens)


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


_FLOWS = {"device": device_login, "codex": codex_login, "pkce": browser_login}


async def log_in(login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock) -> TokenSet:
    """Log in. Raise ConfigError without a client id, ProviderError if the login fails."""
    if login.flow == "google":
        raise ConfigError(f"{login.name} has no login of its own; {HOW_TO}.")
    if not login.client_id:
        raise missing_client_error(login)
    login = await discover_endpoints(login, http=http)
    tokens = await _FLOWS[login.flow](login, screen, http=http, clock=clock)
    if not login.exchange_url:
        return tokens
    exchanged = await exchange_token(login, tokens.access_token, http=http, clock=clock)
    if isinstance(exchanged, OAuthErrorResponse):
        raise login_failed(login, f"the account may not use models ({exchanged.message})")
    return exchanged
