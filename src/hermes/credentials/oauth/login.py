"""Runs the login flow of a vendor."""

from __future__ import annotations

from hermes.core.world import Clock
from hermes.credentials.oauth.device import codex_login, device_login
from hermes.credentials.oauth.grants import discover_endpoints, exchange_token
from hermes.credentials.oauth.logins import Login, missing_client_error
from hermes.credentials.oauth.pkce import browser_login
from hermes.credentials.oauth.screen import LoginScreen, login_failed
from hermes.credentials.oauth.tokens import OAuthErrorResponse, TokenSet
from hermes.providers.http import HttpClient

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
