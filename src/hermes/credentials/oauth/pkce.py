"""Logging in by a browser: an authorization code that only we can use (PKCE with S256)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
from collections.abc import Awaitable
from contextlib import suppress
from urllib.parse import urlencode

from hermes.codec.values import Value
from hermes.core.world import Clock
from hermes.credentials.oauth.callback import Returned, listening, read_returned
from hermes.credentials.oauth.grants import client_fields
from hermes.credentials.oauth.logins import Login
from hermes.credentials.oauth.screen import Screen, login_failed
from hermes.credentials.oauth.tokens import Refusal, Tokens, granted, post
from hermes.providers.http import Http

_BROWSER_SECONDS = 600.0


class Proof(Value):
    """That the one who asks for tokens is the one who began the login."""

    verifier: str
    state: str

    @property
    def challenge(self) -> str:
        return _text(hashlib.sha256(self.verifier.encode()).digest())

    def __repr__(self) -> str:
        return "Proof(…)"


def new_proof() -> Proof:
    # Not from the world: nobody may be able to guess these, whatever else is replayed.
    return Proof(verifier=_text(os.urandom(32)), state=_text(os.urandom(24)))


async def browser_login(login: Login, screen: Screen, *, http: Http, clock: Clock) -> Tokens:
    """Tokens, once the browser came back or the person pasted what it showed; ProviderError."""
    proof = new_proof()
    if login.redirect_uri:
        screen.show_page(authorize_url(login, proof, login.redirect_uri), paste=True)
        found = await _first(login, screen.pasted())
        return await _exchanged(login, proof, found, login.redirect_uri, http=http, clock=clock)
    async with listening(proof.state) as callback:
        screen.show_page(authorize_url(login, proof, callback.url), paste=True)
        found = await _first(login, screen.pasted(), callback.returned)
        return await _exchanged(login, proof, found, callback.url, http=http, clock=clock)


def authorize_url(login: Login, proof: Proof, redirect_uri: str) -> str:
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


async def _first(
    login: Login, pasted: Awaitable[str], returned: asyncio.Future[Returned] | None = None
) -> Returned:
    """Whichever comes first: the browser, or the person."""

    async def by_hand() -> Returned:
        return read_returned(await pasted)

    ways = {asyncio.ensure_future(by_hand()), *([returned] if returned else [])}
    try:
        done, _ = await asyncio.wait(
            ways, timeout=_BROWSER_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for way in ways:
            if not way.done():
                way.cancel()
                with suppress(asyncio.CancelledError):
                    await way
    if not done:
        raise login_failed(login, "the browser did not come back in time")
    return done.pop().result()


async def _exchanged(
    login: Login, proof: Proof, found: Returned, redirect_uri: str, *, http: Http, clock: Clock
) -> Tokens:
    if found.error:
        raise login_failed(login, found.error.replace("_", " "))
    if not found.code:
        raise login_failed(login, "no code was given")
    if not hmac.compare_digest(found.state.encode(), proof.state.encode()):
        raise login_failed(login, "what came back belongs to another login")
    fields = {
        **client_fields(login),
        "grant_type": "authorization_code",
        "code": found.code,
        "state": found.state,
        "redirect_uri": redirect_uri,
        "code_verifier": proof.verifier,
    }
    tokens = granted(
        await post(http, login.token_url, fields, body=login.body), login, now=clock.now()
    )
    if isinstance(tokens, Refusal):
        raise login_failed(login, tokens.words)
    return tokens


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
