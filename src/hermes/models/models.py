"""The models of one run: who answers, the way to them, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hermes.codec.ttl_cache import TtlCache
from hermes.config.load import Config
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import ConfigError, HermesError, UsageError
from hermes.core.ports import Meter, Provider
from hermes.core.world import World
from hermes.credentials.accounts import AUTH_FILE, Accounts
from hermes.models.factory import ProviderFactory
from hermes.models.in_process import InProcessModels
from hermes.models.listings import ModelListings
from hermes.models.model_ref import (
    CUSTOM,
    EMBEDDED,
    IN_PROCESS,
    OFFLINE,
    OFFLINE_LINE,
    OFFLINE_MODEL,
    OFFLINE_WINDOW,
    ModelChoice,
    ModelRef,
)
from hermes.models.ranking import Candidate
from hermes.models.resolver import Resolver
from hermes.net.http import HttpClient
from hermes.providers.catalogue import load_catalogue
from hermes.providers.endpoint import Endpoint
from hermes.providers.fallback import Fallback, FallbackLink, ModelCooldowns
from hermes.providers.local_discovery import find_local, first_model
from hermes.providers.model_servers import ModelListingCache

VENDORS = "vendors.toml"
KEY_AS_NAME = (
    "The name of the model looks like a key, so it is not used; give a name with -m or "
    "`hermes model set`, and keep a key with `hermes config set NAME VALUE`."
)


def _no_guard(provider: Provider) -> Provider:
    return provider


class Models:
    """Contacts nobody before it is asked to choose, and then only if nothing is configured.
    `cooldowns` and `unwell` (for side work) are shared by all sessions of the run. `guard` is put
    around every way to a model. `is_secret` tells what cannot be the name of one."""

    def __init__(
        self,
        config: Config,
        world: World,
        *,
        env: Mapping[str, str],
        guard: Callable[[Provider], Provider] = _no_guard,
        is_secret: Callable[[str], bool] = lambda _: False,
    ) -> None:
        network = config.settings.network
        self.http = HttpClient(
            proxy=network.proxy or None,
            no_proxy=network.no_proxy,
            ca_file=network.ca_bundle or None,
            only_ipv4=network.force_ipv4,
        )
        self.accounts = Accounts(config, world=world, http=self.http, env=env)
        kept = ModelListingCache(config.home.cache, world.clock)
        self.lists = ModelListings(kept, self.http, self.accounts, world.clock)
        self.cooldowns = ModelCooldowns(world.clock)
        self.unwell = ModelCooldowns(world.clock)
        catalogue = load_catalogue(config.home.root / VENDORS)
        self.resolver = Resolver(config, catalogue, kept, self._login_names)
        self.is_secret = is_secret
        self.home = config.home
        self._config = config
        self._inside = InProcessModels(config, world, self.http)
        self._roads = ProviderFactory(
            config.settings, world, self.http, self.resolver, self.accounts, guard
        )
        self._found: Endpoint | None = None
        self._choices: TtlCache[ModelChoice] = TtlCache()

    def enable_burst_caching(self, seconds: float) -> None:
        """Whoever wants the same within so many seconds gets what was found for the first."""
        self._choices.seconds = self._roads.cache.seconds = seconds
        self.resolver.cache.seconds = seconds

    async def close(self) -> None:
        await self._inside.close()
        await self.accounts.close()
        await self.http.aclose()

    def is_explicit(self) -> bool:
        """A model or provider was named for this very run."""
        keys = ("model.default", "model.provider")
        return any(self._config.explain(key).source.kind == "flag" for key in keys)

    async def choose(self) -> ModelChoice:
        """What was named, or refused with a reason; else the best that is there."""
        kept = self._choices.peek("")
        return kept or self._choices.put("", await self._choose_best())

    async def _choose_best(self) -> ModelChoice:
        refused: HermesError | None = None
        for candidate in self.resolver.rank_candidates():
            try:
                return await self._choose_candidate(candidate)
            except HermesError as error:
                if candidate.named:
                    raise
                refused = refused or error
        if refused is not None:
            raise refused
        return await self._choose_local()

    async def choose_explicit(self, provider: str, model: str) -> ModelChoice:
        """This very provider, with the model or its usual one; refused with a reason."""
        return await self._choose_candidate(Candidate(provider=provider, model=model, named=True))

    def is_reachable(self, model: str, provider: str) -> bool:
        """Whether this model could be connected as things are, without trying."""
        if provider in IN_PROCESS:
            return self._inside.has(model, provider)
        return self.resolver.can_reach(self.ref(model, provider))

    def connect(
        self,
        model: str,
        provider: str,
        meter: Meter,
        *,
        cause: str = "chat",
        tier: str | None = None,
    ) -> tuple[Provider, int]:
        """A provider for one session, and the model's window in tokens. Where there are models to
        fall back to, it goes on with them. The service tier is that of the settings, if not given
        here."""
        first = self.link(self.ref(model, provider, tier=tier), meter, cause=cause)
        entries = self._config.settings.fallback_providers
        spare = self.fallback_links(entries, meter, cause=cause, tier=tier)
        links = [first, *(link for link in spare if link.who != first.who)]
        if len(links) == 1:
            return first.variants.patient, first.window
        return Fallback(links, self.cooldowns), first.window

    def endpoint(self, model: str, provider: str, *, tier: str | None = None) -> Endpoint:
        """Where this model is asked; ConfigError for one inside this process."""
        return self.resolver.endpoint(self.ref(model, provider, tier=tier))

    def endpoint_url(self, model: str, provider: str) -> str:
        """The URL that answers for this model; empty for one in this process or an unknown one."""
        if provider in IN_PROCESS:
            return ""
        try:
            return self.endpoint(model, provider).url
        except HermesError:
            return ""

    def takes_tier(self, model: str, provider: str, tier: str) -> bool:
        """Whether this model can be asked for in that service tier."""
        if provider in IN_PROCESS:
            return False
        endpoint = self.endpoint(model, provider, tier=tier)
        # The field is there on that wire too, but knows other words.
        return endpoint.wire != "messages" and endpoint.profile.extra.get("service_tier") == tier

    def window(self, model: str, provider: str) -> int:
        if provider in IN_PROCESS:
            return self._inside.window(model, provider)
        return self.endpoint(model, provider).profile.window

    async def learn_profile(self, model: str, provider: str) -> None:
        """Learn what a server of one's own says about a model, where nobody else has."""
        wish = self.ref(model, provider)
        if self.resolver.can_reach(wish) and self.resolver.guesses_window(wish):
            await self.lists.learn_profile(self.resolver.endpoint(wish))

    def found_url(self, provider: str) -> str:
        """The address of the server that was found, for who wants to keep it."""
        return self._found.url if provider == CUSTOM and self._found is not None else ""

    def fallback_links(
        self,
        entries: Iterable[FallbackSettings],
        meter: Meter,
        *,
        cause: str,
        tier: str | None = None,
    ) -> list[FallbackLink]:
        """The links of these entries; one that cannot be used as things are is left out."""
        links: dict[str, FallbackLink] = {}
        for entry in entries:
            try:
                link = self.link(ref_of(entry, tier=tier), meter, cause=cause)
            except HermesError:
                continue
            links.setdefault(link.who, link)
        return list(links.values())

    def check(self, wish: ModelRef) -> None:
        """UsageError or ConfigError when the wish cannot be fulfilled; nobody is asked."""
        if wish.provider in IN_PROCESS:
            self._inside.window(wish.model, wish.provider)
        elif not self.resolver.endpoint(wish).model:
            raise ConfigError(f"Name a model of {wish.provider}.")

    def link(
        self, wish: ModelRef, meter: Meter, *, cause: str, attempts: int | None = None
    ) -> FallbackLink:
        """UsageError or ConfigError when the wish cannot be fulfilled."""
        self.refuse_key(wish.model)
        if wish.provider in IN_PROCESS:
            inside = self._inside.provider(wish.model, wish.provider)
            window = self._inside.window(wish.model, wish.provider)
            return FallbackLink(
                f"{wish.provider}/{wish.model}",
                model=wish.model or wish.provider,
                provider=wish.provider,
                window=window,
                open=lambda: self._roads.build_in_process(inside, wish, meter, cause=cause),
            )
        endpoint = self.resolver.endpoint(wish)
        if not endpoint.model:
            raise ConfigError(f"Name a model of {endpoint.name}.")
        return FallbackLink(
            f"{endpoint.name}/{endpoint.host}/{endpoint.model}",
            model=endpoint.model,
            provider=endpoint.name,
            window=endpoint.profile.window,
            open=lambda: self._roads.build(endpoint, wish, meter, cause=cause, attempts=attempts),
        )

    def refuse_key(self, model: str) -> None:
        """UsageError for a name that would give a secret away: names are kept and shown."""
        if self.is_secret(model):
            raise UsageError(KEY_AS_NAME)

    def ref(self, model: str, provider: str, *, tier: str | None = None) -> ModelRef:
        """For a choice that was made before."""
        found = self._found
        if provider == CUSTOM and found is not None and found.model == model:
            return ModelRef(provider=CUSTOM, model=model, base_url=found.url, tier=tier)
        return ModelRef(provider=provider, model=model, tier=tier)

    async def _choose_candidate(self, candidate: Candidate) -> ModelChoice:
        provider, model = candidate.provider, candidate.model
        self.refuse_key(model)
        if provider == OFFLINE:
            return ModelChoice(model=OFFLINE_MODEL, provider=OFFLINE, window=OFFLINE_WINDOW)
        if provider == EMBEDDED:
            return self._inside.choice(model)
        line, place = "", self.resolver.places.get(provider)
        if self.resolver.is_ambiguous(model, place):
            # Only the provider's own list tells what the newest of a family is.
            await self.lists.of(place, self.resolver.endpoint(ModelRef(provider=provider)))
        if not model:
            model = place.default_model or await first_model(
                self.http, self.resolver.endpoint(ModelRef(provider=provider))
            )
            line = f"Using {model} ({place.name}); name another with -m or `hermes model set`."
        return choice_of(
            self.resolver.endpoint(ModelRef(provider=provider, model=model)), line=line
        )

    async def _choose_local(self) -> ModelChoice:
        """Nothing is configured: a server on this machine, a file, the offline assistant."""
        if found := await find_local(self.http, self.resolver.catalogue):
            self._found = found.endpoint
            await self.lists.learn_profile(found.endpoint)
            known = self.endpoint(found.endpoint.model, CUSTOM)
            return choice_of(known, line=found.line)
        if choice := self._inside.default_choice():
            return choice
        return ModelChoice(
            model=OFFLINE_MODEL, provider=OFFLINE, window=OFFLINE_WINDOW, line=OFFLINE_LINE
        )

    def _login_names(self) -> tuple[str, ...]:
        """Where somebody logged in last, then all others with a key of their own."""
        if not (self._config.home.root / AUTH_FILE).exists():
            return ()
        kept = self.accounts.wallet.auth_file.peek().providers()
        active = self.accounts.active_provider()
        return tuple(dict.fromkeys((*((active,) if active else ()), *map(_plain_name, kept))))


def ref_of(entry: FallbackSettings, *, tier: str | None = None) -> ModelRef:
    """An entry of a chain; with an address and no provider it is an endpoint of one's own."""
    return ModelRef(
        provider=entry.provider or (CUSTOM if entry.base_url else ""),
        model=entry.model,
        base_url=entry.base_url,
        key_env=entry.key_env,
        context_length=entry.context_length,
        tier=tier,
    )


def choice_of(endpoint: Endpoint, line: str = "") -> ModelChoice:
    return ModelChoice(
        model=endpoint.model, provider=endpoint.name, window=endpoint.profile.window, line=line
    )


def _plain_name(pool: str) -> str:
    return pool.removeprefix(f"{CUSTOM}:")
