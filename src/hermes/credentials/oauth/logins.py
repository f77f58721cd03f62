"""The login settings of vendors, from logins.toml and the home."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value, replace
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.credentials.oauth.tokens import BodyFormat, TokenEndpoint
from hermes.providers.addresses import host_of, is_local
from hermes.providers.endpoint import Auth

OWN_FILE = "oauth.toml"
_ADDRESSES = (
    "issuer",
    "device_url",
    "authorize_url",
    "token_url",
    "revoke_url",
    "exchange_url",
)


class Login(Value, forbid_unknown_fields=True):
    """The login of one vendor; logins.toml documents the fields."""

    provider: str
    flow: Literal["device", "codex", "pkce"]
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
        """`client_id` is that of an existing login, which may be older than the setting."""
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
    page = f" (from {login.key_page})" if login.key_page else ""
    key = f"`hermes auth add {login.key_provider or login.provider} --type api-key`{page}"
    return ConfigError(
        f"A login at {login.name} needs a client id that was issued for this program. Set "
        f"{login.client_variable} if you have one, or use an API key: {key}."
    )


@cache
def _bundled_tables() -> dict[str, JsonObject]:
    return tomllib.loads(Path(__file__).with_name("logins.toml").read_text("utf-8"))


def _own_tables(home: Home) -> dict[str, JsonObject]:
    path = home.root / OWN_FILE
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be used: {error}.") from error
    bad = next((name for name, table in found.items() if not isinstance(table, dict)), None)
    if bad is not None:
        raise ConfigError(f"{path} cannot be used: {bad!r} is outside a [vendor] table.")
    return found


def _build_login(provider: str, table: JsonObject) -> Login:
    try:
        login = convert(Login, {"provider": provider, **table})
    except DecodeError as error:
        raise ConfigError(f"The login for {provider} cannot be used: {error}.") from error
    for name, url in msgspec.structs.asdict(login).items():
        if name in _ADDRESSES and url:
            require_https(url, f"The {name} of the login for {provider}")
    return login


def require_https(url: str, what: str) -> None:
    """Raises ConfigError unless tokens can be sent there encrypted, or to this machine."""
    if not url.startswith("https://") and not (
        url.startswith("http://") and is_local(host_of(url))
    ):
        raise ConfigError(f"{what} is not an https address; correct it in {OWN_FILE}.")
