"""Refreshes, exchanges and revokes tokens, and discovers endpoints."""

from __future__ import annotations

from hermes.codec.values import JsonObject, replace
from hermes.core.errors import ConfigError
from hermes.core.world import Clock
from hermes.credentials.oauth.logins import Login, require_https
from hermes.credentials.oauth.tokens import OAuthErrorResponse, TokenSet, as_number, get, post
from hermes.providers.addresses import host_of
from hermes.providers.http import HttpClient

_DISCOVERY = "/.well-known/openid-configuration"
_FOUND = {
    "device_url": "device_authorization_endpoint",
    "authorize_url": "authorization_endpoint",
    "token_url": "token_endpoint",
    "revoke_url": "revocation_endpoint",
}
# Lifetime of a token that names neither its expiry nor a refresh time.
_EXCHANGED_SECONDS = 1500.0
_LONGEST_EXCHANGED_SECONDS = 86_400.0
_RENEWED_EARLY_SECONDS = 120.0


async def exchange_token(
    login: Login, token: str, *, http: HttpClient, clock: Clock
) -> TokenSet | OAuthErrorResponse:
    """Exchanges a long-lived token for the short-lived one that the model API accepts."""
    answer = await get(http, login.exchange_url, {"authorization": f"token {token}"})
    if isinstance(answer, OAuthErrorResponse):
        return answer
    found = answer.get("token")
    if not isinstance(found, str) or not found:
        return OAuthErrorResponse(code="malformed", text="the answer has no token")
    now = clock.now()
    endpoints = answer.get("endpoints")
    url = endpoints.get("api", "") if isinstance(endpoints, dict) else ""
    if url:
        require_https(url, f"The API address from {login.name}")
    return TokenSet(
        access_token=found,
        refresh_token=token,
        expires_at=now + _lifetime(answer, now),
        url=url,
    )


def _lifetime(answer: JsonObject, now: float) -> float:
    """Prefers a duration: a point in time depends on the server's clock."""
    if (early := as_number(answer.get("refresh_in"))) is not None:
        return early + _RENEWED_EARLY_SECONDS
    over = as_number(answer.get("expires_at"))
    seconds = over - now if over is not None else 0.0
    return seconds if 0 < seconds < _LONGEST_EXCHANGED_SECONDS else _EXCHANGED_SECONDS


async def revoke_token(login: Login, token: str, *, client_id: str, http: HttpClient) -> bool:
    """Revokes a token (RFC 7009); returns whether the server accepted."""
    if not login.revoke_url or not token:
        return False
    fields = {**login.token_endpoint(client_id).client_fields(), "token": token}
    answer = await post(http, login.revoke_url, fields)
    # The answer has no body, so it is not a JSON object.
    return not isinstance(answer, OAuthErrorResponse) or answer.status == 200


async def discover_endpoints(login: Login, *, http: HttpClient) -> Login:
    """Fills in missing endpoints from the issuer's metadata; raises ConfigError."""
    wanted = ("token_url", "authorize_url" if login.flow == "pkce" else "device_url")
    if login.flow == "codex" or all(getattr(login, name) for name in wanted):
        return login
    if not login.issuer:
        raise ConfigError(f"The login for {login.provider} needs endpoint URLs or an issuer.")
    answer = await get(http, login.issuer.rstrip("/") + _DISCOVERY, {})
    if isinstance(answer, OAuthErrorResponse):
        raise ConfigError(f"Cannot discover the endpoints of {login.name} ({answer.message}).")
    for name, key in _FOUND.items():
        url = answer.get(key)
        if isinstance(url, str) and url and not getattr(login, name):
            require_https(url, f"The {key} of {login.name}")
            _require_same_domain(url, login)
            login = replace(login, **{name: url})
    if missing := [name for name in wanted if not getattr(login, name)]:
        raise ConfigError(f"{login.name} does not name its {missing[0]}; set it in oauth.toml.")
    return login


def _require_same_domain(url: str, login: Login) -> None:
    """Raises ConfigError for an endpoint outside the issuer's domain."""
    domain = ".".join(host_of(login.issuer).rsplit(".", 2)[-2:])
    host = host_of(url)
    if host != host_of(login.issuer) and not host.endswith(f".{domain}"):
        raise ConfigError(f"{login.name} names an endpoint on another host ({host}).")
