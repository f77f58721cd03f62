"""All keys and logins of a home, and a key pool for each provider."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from hermes.codec.values import Value
from hermes.config.home import Home
from hermes.config.model_settings import PoolStrategy
from hermes.core.world import World
from hermes.credentials.conditions import Conditions
from hermes.credentials.foreign import OtherPrograms
from hermes.credentials.held import Held
from hermes.credentials.holdings import Holdings
from hermes.credentials.keyring import Keyring
from hermes.credentials.oauth.logins import Logins
from hermes.credentials.pool import Pool
from hermes.credentials.reactions import Cooldowns
from hermes.credentials.renewal import Renewal
from hermes.credentials.states import StateFile
from hermes.credentials.store import Store
from hermes.providers.http import Http


class WalletSettings(Value):
    strategies: dict[str, PoolStrategy] = {}
    cooldowns: Cooldowns = Cooldowns()


class Source(Value):
    """Keys of one provider from the environment and the settings; `scope` applies to keys that
    are added by hand."""

    borrowed: tuple[Held, ...] = ()
    scope: str = ""


class Wallet:
    """`lent` returns the borrowed keys of a provider, `secret` the value of a variable; `env`
    locates the files of other programs. Nothing is read before it is needed."""

    def __init__(
        self,
        home: Home,
        *,
        world: World,
        http: Http,
        env: Mapping[str, str],
        secret: Callable[[str], str],
        lent: Callable[[str], Source],
        settings: WalletSettings | None = None,
    ) -> None:
        self.home = home
        self.world = world
        self.http = http
        self.store = Store(home)
        self.states = StateFile(home)
        self.logins = Logins(home, secret)
        # Homes on one machine share the keyring.
        place = hashlib.sha256(str(home.root).encode()).hexdigest()[:8]
        self.keyring = Keyring(place)
        self._env = env
        self._lent = lent
        self._settings = settings or WalletSettings()
        self._pools: dict[str, Pool] = {}
        self._holdings: dict[str, Holdings] = {}

    def holdings(self, provider: str) -> Holdings:
        if provider not in self._holdings:
            source = self._lent(provider)
            self._holdings[provider] = Holdings(
                provider,
                store=self.store,
                borrowed=source.borrowed,
                others=OtherPrograms(provider, self._env),
                login=self.logins.get(provider),
                keyring=self.keyring,
                scope=source.scope,
            )
        return self._holdings[provider]

    def conditions(self, provider: str) -> Conditions:
        return Conditions(provider, self.states, self.world, self._settings.cooldowns)

    def strategy(self, provider: str) -> PoolStrategy:
        return self._settings.strategies.get(provider, "fill_first")

    def pool(self, provider: str) -> Pool:
        """The pool of a provider, shared by all sessions of this process."""
        if provider not in self._pools:
            holdings = self.holdings(provider)
            self._pools[provider] = Pool(
                holdings,
                Renewal(holdings, store=self.store, http=self.http, world=self.world),
                self.conditions(provider),
                self.world,
                strategy=self.strategy(provider),
            )
        return self._pools[provider]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()

    def asked_keyring(self) -> int:
        """How many secrets were read from the keyring so far."""
        return sum(len(held.keyring_secrets()) for held in self._holdings.values())

    def secret_values(self) -> frozenset[str]:
        """All secrets of auth.json and those read from the keyring so far, for redaction."""
        document = self.store.peek()
        entries = [e for name in document.providers() for e in document.entries(name)]
        values = (value for e in entries for value in (e.access_token, e.refresh_token))
        used = (value for held in self._holdings.values() for value in held.keyring_secrets())
        return frozenset(value for value in (*values, *used) if value)
