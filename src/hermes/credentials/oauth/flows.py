"""Login flows: device code, and browser with PKCE."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Awaitable, Callable
from typing import Protocol
from urllib.parse import urlencode

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ProviderError
from hermes.core.world import Clock
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
from hermes.credentials.oauth.redirect import RedirectListener, listen_for_redirect
from hermes.net.http import HttpClient


class LoginScreen(Protocol):
    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        """Asks the user to open `url` and enter the code. `whole_url` already contains the code;
        "" if there is none."""
        ...

    def show_page(self, url: str, *, paste: bool) -> None:
        """Asks the user to open `url`, and with `paste` to paste the resulting code."""
        ...

    async def read_pasted(self) -> str:
        """The pasted text. Never returns if pasting is not possible."""
        ...


def login_failed(login: Login, why: str) -> ProviderError:
    again = f"run `hermes login {login.provider}` again"
    return ProviderError(f"The login at {login.name} failed: {why}; {again}.", reason="auth")


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


_BROWSER_SECONDS = 600.0


class PkceProof(Value):
    """The PKCE verifier and the state of one login."""

    verifier: str
    state: str

    @property
    def challenge(self) -> str:
        return _base64url(hashlib.sha256(self.verifier.encode()).digest())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


def new_proof() -> PkceProof:
    # Not from World: these must be unpredictable even in a replay.
    return PkceProof(verifier=_base64url(os.urandom(32)), state=_base64url(os.urandom(24)))


async def browser_login(
    login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock
) -> TokenSet:
    """Waits for the redirect or a pasted code; raises ProviderError."""
    proof = new_proof()
    if login.redirect_uri:
        callback = RedirectListener(login.redirect_uri, proof.state)
        return await _log_in(login, proof, callback, screen, http=http, clock=clock)
    async with listen_for_redirect(proof.state) as callback:
        return await _log_in(login, proof, callback, screen, http=http, clock=clock)


def authorize_url(login: Login, proof: PkceProof, redirect_uri: str) -> str:
    query = {
        "response_type": "code",
        "client_id": login.client_id,
        "redirect_uri": redirect_uri,
        "scope": login.scope,
        "state": proof.state,
        "code_challenge": proof.challenge,
        "code_challenge_method": "S256",
    }
    glue = "&" if "?" in login.authorize_url else "?"
    kept = {name: value for name, value in query.items() if value}
    return f"{login.authorize_url}{glue}{urlencode(kept)}"


async def _log_in(
    login: Login,
    proof: PkceProof,
    callback: RedirectListener,
    screen: LoginScreen,
    *,
    http: HttpClient,
    clock: Clock,
) -> TokenSet:
    screen.show_page(authorize_url(login, proof, callback.url), paste=True)
    try:
        found = await callback.wait(screen.read_pasted, _BROWSER_SECONDS)
    except TimeoutError:
        raise login_failed(login, "the browser did not return in time") from None
    if found.error:
        raise login_failed(login, found.error.replace("_", " "))
    fields = {
        "grant_type": "authorization_code",
        "code": found.code,
        "state": found.state,
        "redirect_uri": callback.url,
        "code_verifier": proof.verifier,
    }
    tokens = await request_tokens(login.token_endpoint(), fields, http=http, now=clock.now())
    if isinstance(tokens, OAuthErrorResponse):
        raise login_failed(login, tokens.message)
    return tokens


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


_FLOWS = {"device": device_login, "codex": codex_login, "pkce": browser_login}


async def log_in(login: Login, screen: LoginScreen, *, http: HttpClient, clock: Clock) -> TokenSet:
    """Raises ConfigError without a client id, ProviderError if the login fails."""
    if not login.client_id:
        raise missing_client_error(login)
    login = await discover_endpoints(login, http=http)
    tokens = await _FLOWS[login.flow](login, screen, http=http, clock=clock)
    if not login.exchange_url:
        return tokens
    found = await exchange_token(login, tokens.access_token, http=http, clock=clock)
    if isinstance(found, OAuthErrorResponse):
        raise login_failed(login, f"the account may not use models ({found.message})")
    return found
