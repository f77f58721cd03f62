"""Runs the login flow of a vendor."""

from __future__ import annotations

from hermes.core.world import Clock
from hermes.credentials.oauth.device import codex_login, device_login
from hermes.credentials.oauth.grants import discovered, exchanged
from hermes.credentials.oauth.logins import Login, without_client
from hermes.credentials.oauth.pkce import browser_login
from hermes.credentials.oauth.screen import Screen, login_failed
from hermes.credentials.oauth.tokens import Refusal, Tokens
from hermes.providers.http import Http

_FLOWS = {"device": device_login, "codex": codex_login, "pkce": browser_login}


async def log_in(login: Login, screen: Screen, *, http: Http, clock: Clock) -> Tokens:
    """Raises ConfigError without a client id, ProviderError if the login fails."""
    if not login.client_id:
        raise without_client(login)
    login = await discovered(login, http=http)
    tokens = await _FLOWS[login.flow](login, screen, http=http, clock=clock)
    if not login.exchange_url:
        return tokens
    found = await exchanged(login, tokens.access_token, http=http, clock=clock)
    if isinstance(found, Refusal):
        raise login_failed(login, f"the account may not use models ({found.words})")
    return found
