"""Tokens made from tokens: renewed, exchanged for others, taken back; and addresses looked up."""

from __future__ import annotations

from hermes.codec.values import JsonObject, replace
from hermes.core.errors import ConfigError
from hermes.core.world import Clock
from hermes.credentials.oauth.logins import Login, require_safe
from hermes.credentials.oauth.tokens import Refusal, Tokens, get, granted, number, post
from hermes.providers.addresses import host_of
from hermes.providers.http import Http

_DISCOVERY = "/.well-known/openid-configuration"
_FOUND = {
    "device_url": "device_authorization_endpoint",
    "authorize_url": "authorization_endpoint",
    "token_url": "token_endpoint",
    "revoke_url": "revocation_endpoint",
}
# How long a token is good that tells neither its end nor when to renew it.
_EXCHANGED_SECONDS = 1500.0
_LONGEST_EXCHANGED_SECONDS = 86_400.0
_RENEWED_EARLY_SECONDS = 120.0


async def refreshed(
    login: Login, refresh_token: str, *, client_id: str, http: Http, clock: Clock
) -> Tokens | Refusal:
    """New tokens. Servers that rotate refresh tokens accept each of them once only."""
    fields = client_fields(replace(login, client_id=client_id or login.client_id))
    fields |= {"grant_type": "refresh_token", "refresh_token": refresh_token}
    answer = await post(http, login.token_url, fields, body=login.body)
    tokens = granted(answer, login, now=clock.now())
    if isinstance(tokens, Tokens) and not tokens.refresh_token:
        return replace(tokens, refresh_token=refresh_token)
    return tokens


async def exchanged(login: Login, token: str, *, http: Http, clock: Clock) -> Tokens | Refusal:
    """The short-lived token that models accept, made from one that lasts."""
    answer = await get(http, login.exchange_url, {"authorization": f"token {token}"})
    if isinstance(answer, Refusal):
        return answer
    found = answer.get("token")
    if not isinstance(found, str) or not found:
        return Refusal(code="malformed", text="the answer holds no token")
    now = clock.now()
    endpoints = answer.get("endpoints")
    url = endpoints.get("api", "") if isinstance(endpoints, dict) else ""
    if url:
        require_safe(url, f"The address that {login.name} names")
    return Tokens(
        access_token=found,
        refresh_token=token,
        expires_at=now + _lifetime(answer, now),
        url=url,
    )


def _lifetime(answer: JsonObject, now: float) -> float:
    """From a span if there is one: a moment is by the server's clock."""
    if (early := number(answer.get("refresh_in"))) is not None:
        return early + _RENEWED_EARLY_SECONDS
    over = number(answer.get("expires_at"))
    seconds = over - now if over is not None else 0.0
    return seconds if 0 < seconds < _LONGEST_EXCHANGED_SECONDS else _EXCHANGED_SECONDS


async def revoked(login: Login, token: str, *, client_id: str, http: Http) -> bool:
    """Whether the server took the token back (RFC 7009)."""
    if not login.revoke_url or not token:
        return False
    fields = client_fields(replace(login, client_id=client_id or login.client_id))
    answer = await post(http, login.revoke_url, {**fields, "token": token})
    # The answer to a revocation has no content, which is no JSON object.
    return not isinstance(answer, Refusal) or answer.status == 200


async def discovered(login: Login, *, http: Http) -> Login:
    """The login with the addresses that its issuer names; ConfigError."""
    wanted = ("token_url", "authorize_url" if login.flow == "pkce" else "device_url")
    if login.flow == "codex" or all(getattr(login, name) for name in wanted):
        return login
    if not login.issuer:
        raise ConfigError(f"The login for {login.provider} lacks its addresses or an issuer.")
    answer = await get(http, login.issuer.rstrip("/") + _DISCOVERY, {})
    if isinstance(answer, Refusal):
        raise ConfigError(f"{login.name} cannot be asked how to log in ({answer.words}).")
    for name, key in _FOUND.items():
        url = answer.get(key)
        if isinstance(url, str) and url and not getattr(login, name):
            require_safe(url, f"The {key} of {login.name}")
            _require_kin(url, login)
            login = replace(login, **{name: url})
    if missing := [name for name in wanted if not getattr(login, name)]:
        raise ConfigError(f"{login.name} does not tell its {missing[0]}; set it in oauth.toml.")
    return login


def client_fields(login: Login) -> dict[str, str]:
    secret = {"client_secret": login.client_secret} if login.client_secret else {}
    return {"client_id": login.client_id, **secret}


def _require_kin(url: str, login: Login) -> None:
    """An issuer may name its own hosts and those below its domain, and nobody else's."""
    domain = ".".join(host_of(login.issuer).rsplit(".", 2)[-2:])
    host = host_of(url)
    if host != host_of(login.issuer) and not host.endswith(f".{domain}"):
        raise ConfigError(f"{login.name} names an address of another host ({host}).")
