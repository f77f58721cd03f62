"""Vendor logins from logins.toml and the home: endpoints, token exchange and revocation."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.core.world import Clock
from hermes.credentials.oauth.client import (
    BodyFormat,
    OAuthErrorResponse,
    TokenEndpoint,
    TokenSet,
    as_number,
    get,
    post,
)
from hermes.net.addresses import host_of, is_local
from hermes.net.http import HttpClient
from hermes.providers.endpoint import Auth

OWN_FILE = "oauth.toml"
_ADDRESSES = ("issuer", "device_url", "authorize_url", "token_url", "revoke_url", "exchange_url")


class Login(Value, forbid_unknown_fields=True):
    """The login of one vendor; logins.toml documents the fields."""

    provider: str
    flow: Literal["device", "codex", "pkce", "google"]
    label: str = ""
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    device_url: str = ""
    authorize_url: str = ""
    token_url: str = ""
    revoke_url: str = ""
    redirect_uri: str = ""
    scope: str = ""
    body: BodyFormat = "form"
    skew_seconds: float = 120.0
    exchange_url: str = ""
    account_claim: tuple[str, ...] = ()
    account_header: str = ""
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    bearer_prefix: str = ""
    refused_prefix: str = ""
    key_page: str = ""
    key_provider: str = ""

    @property
    def name(self) -> str:
        return self.label or self.provider

    @property
    def client_variable(self) -> str:
        return f"HERMES_{self.provider.upper().replace('-', '_')}_CLIENT_ID"

    def token_endpoint(self, client_id: str = "") -> TokenEndpoint:
        """Return the token endpoint. `client_id` is that of an existing login, which may be older
        than the setting."""
        return TokenEndpoint(
            url=self.token_url,
            client_id=client_id or self.client_id,
            client_secret=self.client_secret,
            body=self.body,
            account_claim=self.account_claim,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(provider={self.provider!r}, flow={self.flow!r})"


class LoginCatalogue:
    """The bundled logins, with changes and additions from the home."""

    def __init__(self, home: Home, secret: Callable[[str], str]) -> None:
        self._home = home
        self._secret = secret
        self._known: dict[str, Login] | None = None

    def names(self) -> tuple[str, ...]:
        return tuple(self._all())

    def get(self, provider: str) -> Login | None:
        found = self._all().get(provider)
        if found is None:
            return None
        return replace(found, client_id=self._secret(found.client_variable) or found.client_id)

    def _all(self) -> dict[str, Login]:
        if self._known is None:
            tables = dict(_bundled_tables())
            for provider, table in _own_tables(self._home).items():
                tables[provider] = {**tables.get(provider, {}), **table}
            self._known = {name: _build_login(name, table) for name, table in tables.items()}
        return self._known


def missing_client_error(login: Login) -> ConfigError:
    """Say how to get access without a client id: by the vendor's own program, whose login Hermes
    reads, or by a key."""
    from hermes.credentials.other_programs import LOGIN_PROGRAMS

    page = f" (from {login.key_page})" if login.key_page else ""
    key = f"`hermes auth add {login.key_provider or login.provider} --type api-key`{page}"
    programs = (each for each in LOGIN_PROGRAMS if each.provider == login.provider)
    program = next(programs, None)
    other = (
        f" log in with the {program.label} (`{program.command}`), whose login Hermes can read,"
        if program is not None and program.provider != "anthropic"
        else ""
    )
    return ConfigError(
        f"A login at {login.name} needs a client id that {login.name} issues to a registered "
        f"application. Register one there and set {login.client_variable},{other} or use an API "
        f"key: {key}."
    )


@cache
def _bundled_tables() -> dict[str, JsonObject]:
    return tomllib.loads(Path(__file__).with_name("logins.toml").read_text("utf-8"))


def _own_tables(home: Home) -> dict[str, JsonObject]:
    path = home.root / OWN_FILE
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be used ({error}); correct it.") from error
    bad = next((name for name, table in tables.items() if not isinstance(table, dict)), None)
    if bad is not None:
        raise ConfigError(
            f"{path} cannot be used: {bad!r} is outside a [vendor] table; move it into one."
        )
    return tables


def _build_login(provider: str, table: JsonObject) -> Login:
    try:
        login = convert(Login, {"provider": provider, **table})
    except DecodeError as error:
        raise ConfigError(
            f"The login for {provider} cannot be used ({error}); correct it."
        ) from error
    for name in _ADDRESSES:
        if url := getattr(login, name):
            require_https(url, f"The {name} of the login for {provider}")
    return login


def require_https(url: str, what: str) -> None:
    """Raise ConfigError unless the URL uses https or is on this machine."""
    if not url.startswith("https://") and not (
        url.startswith("http://") and is_local(host_of(url))
    ):
        raise ConfigError(f"{what} is not an https address; correct it in {OWN_FILE}.")


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
    """Exchange a long-lived token for the short-lived one that the model API accepts."""
    answer = await get(http, login.exchange_url, {"authorization": f"token {token}"})
    if isinstance(answer, OAuthErrorResponse):
        return answer
    access_token = answer.get("token")
    if not isinstance(access_token, str) or not access_token:
        return OAuthErrorResponse(code="malformed", text="the answer has no token")
    endpoints = answer.get("endpoints")
    url = endpoints.get("api", "") if isinstance(endpoints, dict) else ""
    if url:
        require_https(url, f"The API address from {login.name}")
    now, early = clock.now(), as_number(answer.get("refresh_in"))
    # A duration is preferred: a point in time depends on the server's clock.
    if early is not None:
        seconds = early + _RENEWED_EARLY_SECONDS
    else:
        seconds = (as_number(answer.get("expires_at")) or 0.0) - now
        if not 0 < seconds < _LONGEST_EXCHANGED_SECONDS:
            seconds = _EXCHANGED_SECONDS
    return TokenSet(
        access_token=access_token, refresh_token=token, expires_at=now + seconds, url=url
    )


async def revoke_token(login: Login, token: str, *, client_id: str, http: HttpClient) -> bool:
    """Revoke a token (RFC 7009); return whether the server accepted."""
    if not login.revoke_url or not token:
        return False
    fields = {**login.token_endpoint(client_id).client_fields(), "token": token}
    answer = await post(http, login.revoke_url, fields)
    # The answer has no body, so it is not a JSON object.
    return not isinstance(answer, OAuthErrorResponse) or answer.status == 200


async def discover_endpoints(login: Login, *, http: HttpClient) -> Login:
    """Fill in missing endpoints from the issuer's metadata; raise ConfigError."""
    wanted = ("token_url", "authorize_url" if login.flow == "pkce" else "device_url")
    if login.flow in ("codex", "google") or all(getattr(login, name) for name in wanted):
        return login
    if not login.issuer:
        raise ConfigError(f"The login for {login.provider} has no issuer; set one in oauth.toml.")
    answer = await get(http, login.issuer.rstrip("/") + _DISCOVERY, {})
    if isinstance(answer, OAuthErrorResponse):
        raise ConfigError(
            f"Cannot discover the endpoints of {login.name} ({answer.message}); try again later, "
            "or set them in oauth.toml."
        )
    for name, key in _FOUND.items():
        url = answer.get(key)
        if isinstance(url, str) and url and not getattr(login, name):
            require_https(url, f"The {key} of {login.name}")
            host, issuer = host_of(url), host_of(login.issuer)
            domain = ".".join(issuer.rsplit(".", 2)[-2:])
            if host != issuer and not host.endswith(f".{domain}"):
                raise ConfigError(
                    f"The issuer of {login.name} names an endpoint on another host ({host}); set "
                    "the endpoint in oauth.toml if you trust it."
                )
            login = replace(login, **{name: url})
    if missing := [name for name in wanted if not getattr(login, name)]:
        raise ConfigError(
            f"The issuer of {login.name} publishes no {missing[0]}; set it in oauth.toml."
        )
    return login
