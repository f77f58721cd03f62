"""Login in the browser: authorization code with PKCE (S256)."""

from __future__ import annotations

import base64
import hashlib
import os
from urllib.parse import urlencode

from hermes.codec.values import Value
from hermes.core.world import Clock
from hermes.credentials.oauth.callback import RedirectListener, listen_for_redirect
from hermes.credentials.oauth.logins import Login
from hermes.credentials.oauth.screen import LoginScreen, login_failed
from hermes.credentials.oauth.tokens import OAuthErrorResponse, TokenSet, request_tokens
from hermes.providers.http import HttpClient

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
        found = await callback.wait(screen.pasted, _BROWSER_SECONDS)
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
