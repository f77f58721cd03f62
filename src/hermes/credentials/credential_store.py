"""All keys and logins of a home, and a key pool for each provider."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from hermes.config.home import Home
from hermes.config.provider_settings import CooldownSettings, PoolStrategy
from hermes.core.world import World
from hermes.credentials.auth_file import AuthFile
from hermes.credentials.key_health import KeyHealth, KeyStateFile
from hermes.credentials.key_pool import SharedKeyPool
from hermes.credentials.key_sources import Keyring, KeySources
from hermes.credentials.oauth.logins import LoginCatalogue
from hermes.credentials.other_programs import OtherPrograms
from hermes.credentials.stored_key import StoredKey
from hermes.credentials.token_refresh import TokenRefresher
from hermes.net.http import HttpClient


class CredentialStore:
    """The keys and logins of a home, with a key pool for each provider. Nothing is read before it
    is needed."""

    def __init__(
        self,
        home: Home,
        *,
        world: World,
        http: HttpClient,
        env: Mapping[str, str],  # locates the files of other programs
        secret: Callable[[str], str],  # returns the value of a variable
        # returns the keys of a provider from the environment and the settings, and the scope of
        # keys that are added by hand
        borrowed_keys: Callable[[str], tuple[tuple[StoredKey, ...], str]],
        strategies: Mapping[str, PoolStrategy] | None = None,
        cooldowns: CooldownSettings | None = None,
    ) -> None:
        self.home = home
        self.world = world
        self.http = http
        self.auth_file = AuthFile(home)
        self.states = KeyStateFile(home)
        self.logins = LoginCatalogue(home, secret)
        # Homes on one machine share the keyring.
        self.keyring = Keyring(hashlib.sha256(str(home.root).encode()).hexdigest()[:8])
        self._env = env
        self._borrowed_keys = borrowed_keys
        self._strategies = strategies or {}
        self._cooldowns = cooldowns or CooldownSettings()
        self._pools: dict[str, SharedKeyPool] = {}
        self._key_sources: dict[str, KeySources] = {}

    def key_sources(self, provider: str) -> KeySources:
        if provider not in self._key_sources:
            borrowed, scope = self._borrowed_keys(provider)
            self._key_sources[provider] = KeySources(
                provider,
                store=self.auth_file,
                borrowed=borrowed,
                others=OtherPrograms(provider, self._env),
                login=self.logins.get(provider),
                keyring=self.keyring,
                scope=scope,
            )
        return self._key_sources[provider]

    def key_health(self, provider: str) -> KeyHealth:
        return KeyHealth(provider, self.states, self.world, self._cooldowns)

    def pool(self, provider: str) -> SharedKeyPool:
        """Return the pool of a provider, shared by all sessions of this process."""
        if provider not in self._pools:
            sources = self.key_sources(provider)
            self._pools[provider] = SharedKeyPool(
                sources,
                TokenRefresher(sources, store=self.auth_file, http=self.http, world=self.world),
                self.key_health(provider),
                self.world,
                strategy=self._strategies.get(provider, "fill_first"),
            )
        return self._pools[provider]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()

    def keyring_secrets(self) -> list[str]:
        """Return the secrets read from the keyring so far."""
        return [each for sources in self._key_sources.values() for each in sources.keyring_secrets]

    def secret_values(self) -> frozenset[str]:
        """Return all secrets of auth.json and those read from the keyring so far, for redaction."""
        document = self.auth_file.peek()
        entries = [e for name in document.providers() for e in document.entries(name)]
        values = (value for e in entries for value in (e.access_token, e.refresh_token))
        return frozenset(value for value in (*values, *self.keyring_secrets()) if value)
