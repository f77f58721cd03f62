"""The keys and logins of each provider, and the operations on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from hermes.config.layers import suggest_names
from hermes.config.load import Config
from hermes.config.provider_settings import ModelSettings
from hermes.config.settings import NetworkSettings
from hermes.core.errors import ConfigError, NotFound
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.endpoint import LOGIN, is_plausible_key, read_key
from hermes.providers.keys import Credential, KeyPool, SingleKey, numbered_variables
from hermes.providers.model_catalogue import Vendor, shipped_catalogue

if TYPE_CHECKING:
    from hermes.credentials.admin import AccountRow, CredentialAdmin
    from hermes.credentials.credential_store import CredentialStore
    from hermes.credentials.stored_key import StoredKey

CUSTOM = "custom"
AUTH_FILE = "auth.json"


class EnvironmentKey(NamedTuple):
    """A key from the environment or the settings. `scope` is the variable that ties it to a
    vendor."""

    source: str
    key: str
    scope: str


class Accounts:
    """The keys and logins of one run. The credential store is loaded only when keys are shared or
    managed."""

    def __init__(
        self,
        config: Config,
        *,
        world: World,
        http: HttpClient,
        env: Mapping[str, str],
    ) -> None:
        self._config = config
        self._world = world
        self._http = http
        self._env = env
        self._catalogue = shipped_catalogue()
        self._store: CredentialStore | None = None

    def keys_for(self, provider: str, vendor: Vendor) -> KeyPool:
        """Return the keys for requests to this provider; a `SingleKey` when no pool is needed."""
        keys = self.environment_keys(provider, vendor)
        name = pool_name(provider, vendor)
        if not self._needs_pool(name, vendor, keys):
            source, key, scope = keys[0] if keys else EnvironmentKey("", "", "")
            label = source.partition(":")[2]
            return SingleKey(
                Credential(id=source, provider=name, key=key, label=label, source=scope)
            )
        return self.store.pool(name)

    def active_provider(self) -> str:
        """Return the provider of the latest login, or ""."""
        if not self._has_file():
            return ""
        try:
            return self.store.auth_file.peek().active_provider
        except ConfigError:
            return ""

    def secret_values(self) -> frozenset[str]:
        """Return the secrets in auth.json."""
        try:
            return self.store.secret_values() if self._has_file() else frozenset()
        except ConfigError:
            return frozenset()

    def watch_secrets(self, watch: Callable[..., None]) -> None:
        """Register auth.json and the values read from the keyring as secret sources."""

        def keyring_reads() -> int:
            return 0 if self._store is None else len(self._store.keyring_secrets())

        watch(self.secret_values, self._config.home.root / AUTH_FILE, keyring_reads)

    async def rows(self, provider: str = "") -> tuple[AccountRow, ...]:
        """Return the rows of one provider, or of all that have a key or login."""
        from hermes.credentials.admin import CredentialAdmin

        names = [self.known_name(provider)] if provider else await self._names()
        admins = [CredentialAdmin(self.store, name) for name in names]
        return tuple([row for admin in admins for row in await admin.rows()])

    def admin(self, provider: str) -> CredentialAdmin:
        """Return the admin for the keys and logins of one provider; raise NotFound."""
        from hermes.credentials.admin import CredentialAdmin

        return CredentialAdmin(self.store, self.known_name(provider))

    def takes_keys(self, provider: str) -> bool:
        """Return whether the provider accepts API keys."""
        name = self.known_name(provider)
        return bool(self._vendor(name).keys) or name not in self.logins()

    def has_other_program(self, provider: str) -> bool:
        """Return whether another program on this machine may have a login for the provider."""
        return self.store.key_sources(provider).has_other_program

    def has_keyring(self) -> bool:
        return self.store.keyring.is_installed()

    def logins(self) -> tuple[str, ...]:
        """Return the providers that support logins."""
        return self.store.logins.names()

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    @property
    def store(self) -> CredentialStore:
        if self._store is None:
            from hermes.credentials.credential_store import CredentialStore

            self._store = CredentialStore(
                self._config.home,
                world=self._world,
                http=self._http,
                env=self._env,
                secret=self._config.secrets.get,
                borrowed_keys=self._borrowed_keys,
                strategies=self._config.settings.credential_pool_strategies,
                cooldowns=self._config.settings.credential_pool_cooldowns,
            )
        return self._store

    def environment_keys(self, provider: str, vendor: Vendor) -> list[EnvironmentKey]:
        """Return the keys from the settings, else from the provider's variables, without
        duplicates."""
        settings = self._config.settings
        own = settings.providers.get(provider)
        if own is not None and own.api_key:
            return _usable([EnvironmentKey(f"config:{provider}", own.api_key, "")])
        if own is not None and own.key_env:
            return self._variables(own.key_env, scope="")
        if provider == (settings.model.provider or CUSTOM) and _model_keys(settings.model):
            return _usable(_model_keys(settings.model))
        return _usable([key for name in vendor.keys for key in self._variables(name, scope=name)])

    def _variables(self, name: str, *, scope: str) -> list[EnvironmentKey]:
        get = self._config.secrets.get
        return _usable(
            [
                EnvironmentKey(f"env:{each}", read_key(get, each), scope)
                for each in numbered_variables(name)
            ]
        )

    def _needs_pool(self, name: str, vendor: Vendor, keys: list[EnvironmentKey]) -> bool:
        """Return whether the provider needs a key pool."""
        if len(keys) > 1 or (keys and vendor.login in ("copilot", "vertex")):
            return True
        if not self._has_file():
            return not keys and not vendor.key_optional and vendor.name != CUSTOM
        try:
            document = self.store.auth_file.peek()
        except ConfigError:
            return True
        return bool(document.entries(name) or document.suppressed_sources(name)) or not (
            keys or vendor.key_optional or vendor.name == CUSTOM
        )

    def _has_file(self) -> bool:
        return (self._config.home.root / AUTH_FILE).exists()

    def _borrowed_keys(self, name: str) -> tuple[tuple[StoredKey, ...], str]:
        """Return the keys that auth.json does not store, and the scope of those that it does."""
        from hermes.credentials.stored_key import borrowed_key

        vendor = self._vendor(name)
        keys = self.environment_keys(name.removeprefix(f"{CUSTOM}:"), vendor)
        borrowed = tuple(borrowed_key(name, key.source, key.key, scope=key.scope) for key in keys)
        scope = vendor.keys[0] if vendor.keys else LOGIN
        return borrowed, "" if name.startswith(CUSTOM) else scope

    def _vendor(self, name: str) -> Vendor:
        return self._catalogue.vendor(name) or self._catalogue.vendors[CUSTOM]

    def known_name(self, provider: str) -> str:
        """Return the name under which a provider's keys are stored; raise NotFound."""
        vendor = self._catalogue.vendor(provider)
        if vendor is not None:
            return vendor.name
        bare = provider.removeprefix(f"{CUSTOM}:")
        if bare in self._config.settings.providers:
            return f"{CUSTOM}:{bare}"
        if provider in self.logins() or provider in self.store.auth_file.peek().providers():
            return provider
        near = tuple(suggest_names(provider, (*self._catalogue.vendors, *self.logins())))
        raise NotFound(f"There is no provider {provider!r}; see `hermes model list`.", near=near)

    async def _names(self) -> list[str]:
        """Return the providers that have a key or login of any kind."""
        from hermes.credentials.other_programs import LOGIN_PROGRAMS

        names = list((await self.store.auth_file.read()).providers())
        for vendor in self._catalogue.vendors.values():
            if vendor.auto and vendor.name != CUSTOM and self.environment_keys(vendor.name, vendor):
                names.append(vendor.name)
        for name in self._config.settings.providers:
            if self._catalogue.vendor(name) is None and self.environment_keys(
                name, self._vendor(name)
            ):
                names.append(f"{CUSTOM}:{name}")
        for program in LOGIN_PROGRAMS:
            if self.store.key_sources(program.provider).has_other_program:
                names.append(program.provider)
        return list(dict.fromkeys(names))


def pool_name(provider: str, vendor: Vendor) -> str:
    """Return the name of the key pool. Custom endpoints have separate keys."""
    if vendor.name == CUSTOM and provider != CUSTOM and provider not in vendor.aliases:
        return f"{CUSTOM}:{provider.removeprefix('custom:')}"
    return vendor.name


def _model_keys(model: ModelSettings) -> list[EnvironmentKey]:
    """The keys of the `model` settings."""
    keys = [EnvironmentKey("config:model", model.api_key, "")] if model.api_key else []
    more = enumerate(model.api_keys, start=2)
    return [*keys, *(EnvironmentKey(f"config:model:{n}", key, "") for n, key in more)]


def _usable(keys: list[EnvironmentKey]) -> list[EnvironmentKey]:
    seen: dict[str, EnvironmentKey] = {}
    for each in keys:
        if is_plausible_key(each.key):
            seen.setdefault(each.key, each)
    return list(seen.values())


def http_client(network: NetworkSettings) -> HttpClient:
    """Return the client for model and image servers."""
    return HttpClient(
        proxy=network.proxy or None,
        no_proxy=network.no_proxy,
        ca_file=network.ca_bundle or None,
        only_ipv4=network.force_ipv4,
    )


@asynccontextmanager
async def open_accounts(config: Config, *, env: Mapping[str, str]) -> AsyncIterator[Accounts]:
    """Open the accounts of a home, for commands that use no model."""
    http = http_client(config.settings.network)
    accounts = Accounts(config, world=World(), http=http, env=env)
    try:
        yield accounts
    finally:
        await accounts.close()
        await http.aclose()
