"""The models of one run: chooses one, connects to it, and provides its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import replace
from hermes.config.load import Config
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import ConfigError, HermesError, NotFound, UsageError
from hermes.core.ports import Meter, Middleware, Provider
from hermes.core.world import World
from hermes.credentials.accounts import AUTH_FILE, Accounts, http_client
from hermes.models.factory import ProviderFactory
from hermes.models.in_process import InProcessModels
from hermes.models.listings import ModelListings
from hermes.models.model_ref import (
    CUSTOM,
    EMBEDDED,
    IN_PROCESS,
    NO_MODEL,
    OFFLINE,
    OFFLINE_LINE,
    OFFLINE_MODEL,
    OFFLINE_WINDOW,
    ConfiguredValue,
    ModelChoice,
    ModelRef,
)
from hermes.models.names import ProviderEntry, near_names, unlisted_message
from hermes.models.ranking import Candidate
from hermes.models.resolver import Resolver
from hermes.providers.endpoint import Endpoint
from hermes.providers.fallback import (
    BUSY_REASONS,
    FALLBACK_REASONS,
    Fallback,
    FallbackLink,
    ModelCooldowns,
)
from hermes.providers.local_discovery import find_local, first_model
from hermes.providers.model_catalogue import load_catalogue
from hermes.providers.model_servers import ModelListingCache
from hermes.providers.retry import RetryMode

VENDORS = "vendors.toml"
KEY_AS_NAME = (
    "The model name looks like a key and is not used; name a model with -m or "
    "`hermes model set`, and save a key with `hermes config set NAME VALUE`."
)


class Models:
    """Chooses models and builds their providers. Makes a request only to choose a model when none
    is configured. `cooldowns` and `side_cooldowns` are shared by all sessions of the run. `redact`
    wraps every provider. `is_secret` recognizes keys that were entered as model names."""

    def __init__(
        self,
        config: Config,
        world: World,
        *,
        env: Mapping[str, str],
        redact: Middleware = lambda provider: provider,
        is_secret: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.http = http_client(config.settings.network)
        self.accounts = Accounts(config, world=world, http=self.http, env=env)
        listing_cache = ModelListingCache(config.home.cache, world.clock)
        self.listings = ModelListings(listing_cache, self.http, self.accounts, world.clock)
        self.cooldowns = ModelCooldowns(world.clock)
        self.side_cooldowns = ModelCooldowns(world.clock)
        catalogue = load_catalogue(config.home.root / VENDORS)
        self.resolver = Resolver(
            config, catalogue, listing_cache, self._login_names, self._has_other_program
        )
        self.is_secret = is_secret
        self.home = config.home
        self._config = config
        self._in_process = InProcessModels(config, world, self.http)
        self._factory = ProviderFactory(
            config.settings,
            world,
            self.http,
            self.resolver,
            self.accounts,
            self._in_process,
            redact,
        )
        self._found: Endpoint | None = None
        self._choices: TtlCache[ModelChoice] = TtlCache()

    def enable_burst_caching(self, seconds: float) -> None:
        """Reuse choices and endpoints for this many seconds when many sessions open at once."""
        self._choices.seconds = self._factory.cache.seconds = seconds
        self.resolver.cache.seconds = seconds

    async def close(self) -> None:
        await self._in_process.close()
        await self.accounts.close()
        await self.http.aclose()

    def is_explicit(self) -> bool:
        """Return whether a model or provider was named for this run."""
        return self._is_flag("model.default") or self._is_flag("model.provider")

    def _is_flag(self, key: str) -> bool:
        return self._config.explain(key).source.kind == "flag"

    async def choose(self) -> ModelChoice:
        """Return the model that was named, or raise an error; else the best available one."""
        if cached := self._choices.peek(""):
            return cached
        first_error: HermesError | None = None
        for candidate in self.resolver.rank_candidates():
            try:
                choice = await self._choose_candidate(candidate)
                return self._choices.put("", replace(choice, why=candidate.why))
            except HermesError as error:
                if candidate.named:
                    raise
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        named = self.resolver.named_model()
        choice = await (self._choose_unlisted(named) if named else self._choose_local())
        return self._choices.put("", choice)

    async def choose_explicit(self, provider: str, model: str) -> ModelChoice:
        """Choose this provider, with the given model or its default one; raise an error if it
        cannot be used."""
        return await self._choose_candidate(Candidate(provider=provider, model=model, named=True))

    def in_process_problem(self, model: str, provider: str) -> str:
        """Return why an in-process model cannot be used, or "". Makes no requests."""
        try:
            self._in_process.choice(model, provider)
        except HermesError as error:
            return str(error)
        return ""

    def is_reachable(self, model: str, provider: str) -> bool:
        """Return whether this model could be connected now. Makes no requests."""
        if provider in IN_PROCESS:
            return self._in_process.has(model, provider)
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
        """Build a provider for one session, with its fallback models; return it and the context
        window in tokens. `tier` None takes the service tier of the settings."""
        ref = self.ref(model, provider, tier=tier)
        if cause == "chat" and (body := self._config.settings.model.extra_body):
            ref = replace(ref, extra_body=body)
        first = self.link(ref, meter, cause=cause)
        entries = self._config.settings.fallback_providers
        fallbacks = self.fallback_links(entries, meter, cause=cause, tier=tier)
        links = [first, *(link for link in fallbacks if link.who != first.who)]
        if len(links) == 1:
            return first.connect(), first.window
        # Another model stands in for a busy one, but not for one that was named for this run and
        # cannot be used, unless it was named for this run, too.
        explicit = self.is_explicit() and not self._is_flag("fallback_providers")
        reasons = BUSY_REASONS if explicit else FALLBACK_REASONS
        return Fallback(links, self.cooldowns, reasons=reasons), first.window

    def endpoint(self, model: str, provider: str, *, tier: str | None = None) -> Endpoint:
        """Return where this model is served. Raise ConfigError for in-process models."""
        return self.resolver.endpoint(self.ref(model, provider, tier=tier))

    def find_endpoint(self, model: str, provider: str) -> Endpoint | None:
        """Return where this model is served; None for an in-process or unknown model."""
        if provider in IN_PROCESS:
            return None
        try:
            return self.endpoint(model, provider)
        except HermesError:
            return None

    def takes_tier(self, model: str, provider: str, tier: str) -> bool:
        """Return whether this model supports that service tier."""
        if provider in IN_PROCESS:
            return False
        endpoint = self.endpoint(model, provider, tier=tier)
        # The Messages API has this field too, with other values.
        return endpoint.wire != "messages" and endpoint.profile.extra.get("service_tier") == tier

    def window(self, model: str, provider: str) -> int:
        if provider in IN_PROCESS:
            return self._in_process.window(model, provider)
        return self.endpoint(model, provider).profile.window

    async def learn_profile(self, model: str, provider: str) -> None:
        """Ask a local server for the model's limits if its window is only a guess."""
        ref = self.ref(model, provider)
        if self.resolver.can_reach(ref) and self.resolver.guesses_window(ref):
            await self.listings.learn_profile(self.resolver.endpoint(ref))

    def found_url(self, provider: str) -> str:
        """Return the URL of the server found on this machine, so that it can be saved."""
        return self._found.url if provider == CUSTOM and self._found is not None else ""

    def fallback_links(
        self,
        entries: Iterable[FallbackSettings],
        meter: Meter,
        *,
        cause: str,
        tier: str | None = None,
    ) -> list[FallbackLink]:
        """Return the links of these entries; unusable entries are skipped."""
        links: dict[str, FallbackLink] = {}
        for entry in entries:
            try:
                link = self.link(ref_of(entry, tier=tier), meter, cause=cause)
            except HermesError:
                continue
            links.setdefault(link.who, link)
        return list(links.values())

    def check(self, ref: ModelRef) -> None:
        """Raise UsageError or ConfigError when the model cannot be used. Makes no requests."""
        if ref.provider in IN_PROCESS:
            self._in_process.window(ref.model, ref.provider)
        elif not self.resolver.endpoint(ref).model:
            raise ConfigError(f"No model is named for {ref.provider}; name one with -m.")

    def link(
        self, ref: ModelRef, meter: Meter, *, cause: str, attempts: int | None = None
    ) -> FallbackLink:
        """Build the link of a model. Raise UsageError or ConfigError when the model cannot be
        used."""
        self.refuse_key(ref.model)
        endpoint: Endpoint | None = None
        if ref.provider in IN_PROCESS:
            name, provider = ref.model or ref.provider, ref.provider
            who = f"{provider}/{ref.model}"
            window = self._in_process.window(ref.model, provider)
        else:
            endpoint = self.resolver.endpoint(ref)
            name, provider = endpoint.model, endpoint.name
            if not name:
                raise ConfigError(f"No model is named for {provider}; name one with -m.")
            who = f"{provider}/{endpoint.host}/{name}"
            window = endpoint.profile.window

        def build(mode: RetryMode) -> Provider:
            return self._factory.build(
                ref, endpoint, meter, cause=cause, attempts=attempts, mode=mode
            )

        return FallbackLink(who, model=name, provider=provider, window=window, build=build)

    def refuse_key(self, model: str) -> None:
        """Raise UsageError for a name that looks like a secret: names are stored and shown."""
        if self.is_secret(model):
            raise UsageError(KEY_AS_NAME)

    def ref(self, model: str, provider: str, *, tier: str | None = None) -> ModelRef:
        """Return the reference for an earlier choice."""
        found = self._found
        if provider == CUSTOM and found is not None and found.model == model:
            return ModelRef(provider=CUSTOM, model=model, base_url=found.url, tier=tier)
        return ModelRef(provider=provider, model=model, tier=tier)

    async def _choose_candidate(self, candidate: Candidate) -> ModelChoice:
        provider, model = candidate.provider, candidate.model
        self.refuse_key(model)
        if provider in IN_PROCESS:
            return self._in_process.choice(model, provider)
        line, entry = "", self.resolver.providers.get(provider)
        if self.resolver.is_ambiguous(model, entry):
            # Only the provider's own list says which model of a family is the newest.
            await self.listings.of(entry, self.resolver.endpoint(ModelRef(provider=provider)))
        if not model:
            endpoint = self.resolver.endpoint(ModelRef(provider=provider))
            model = entry.default_model or await first_model(self.http, endpoint)
            line = f"Using {model} ({entry.name}); choose another with -m or `hermes model set`."
        endpoint = self.resolver.endpoint(ModelRef(provider=provider, model=model))
        if candidate.model and self.is_explicit():
            await self._refuse_unlisted(entry, endpoint)
        return choice_of(endpoint, line=line)

    async def _refuse_unlisted(self, entry: ProviderEntry, endpoint: Endpoint) -> None:
        """Raise NotFound for a model that a local server or an own provider does not
        list: such servers may answer with another model. Hosted vendors refuse such names
        themselves. A bare address is checked only against a list that is already here, because a
        one-shot run with an address and a name makes no other request."""
        local = endpoint.is_local and (entry.server or endpoint.url == entry.vendor.url)
        if local or entry.own.base_url:
            listing, _ = await self.listings.of(entry, endpoint)
        else:
            listing = self.listings.cached(endpoint.url)
        if listing is None or not listing.complete or endpoint.model in entry.own.models:
            return
        if not listing.serves(endpoint.model):
            near = near_names(endpoint.model, (info.id for info in listing.models))
            raise NotFound(unlisted_message(entry, endpoint.model, near), near=near)

    async def _choose_local(self) -> ModelChoice:
        """Choose when nothing is configured: a local server, a model file, then the offline
        assistant. A model under 1B parameters is only used when the user chose it."""
        if choice := await self._find_server():
            return choice
        if choice := self._in_process.default_choice():
            return replace(choice, why="a model file in this home; nothing else is configured")
        return ModelChoice(
            model=OFFLINE_MODEL,
            provider=OFFLINE,
            window=OFFLINE_WINDOW,
            line=OFFLINE_LINE,
            why=NO_MODEL,
        )

    async def _choose_unlisted(self, named: ConfiguredValue) -> ModelChoice:
        """Find a model that was named without a provider, on this machine. Raise ConfigError when
        nothing here serves it: no other model answers instead."""
        model = self.resolver.names.read(named.value).model
        self.refuse_key(model)
        if model in (OFFLINE_MODEL, OFFLINE):
            return replace(self._in_process.choice(model, OFFLINE), why=named.source)
        if choice := await self._find_server(model):
            return replace(choice, why=named.source)
        if self._in_process.is_installed(model):
            return replace(self._in_process.choice(model, EMBEDDED), why=named.source)
        raise ConfigError(self.resolver.explain_unserved(model))

    async def _find_server(self, model: str = "") -> ModelChoice | None:
        """Find a running server, one that serves this model if a name is given."""
        server = await find_local(self.http, self.resolver.catalogue, model=model)
        if server is None:
            return None
        self._found = server.endpoint
        await self.listings.learn_profile(server.endpoint)
        endpoint = self.endpoint(server.endpoint.model, CUSTOM)
        why = "a server on this machine; nothing else is configured"
        return replace(choice_of(endpoint, line=server.line), why=why)

    def _has_other_program(self, provider: str) -> bool:
        return self.accounts.has_other_program(provider)

    def _login_names(self) -> tuple[str, ...]:
        """Return the providers with credentials in auth.json, the active login first."""
        if not (self._config.home.root / AUTH_FILE).exists():
            return ()
        saved = self.accounts.store.auth_file.peek().providers()
        names = (pool.removeprefix(f"{CUSTOM}:") for pool in saved)
        active = self.accounts.active_provider()
        return tuple(dict.fromkeys((*((active,) if active else ()), *names)))


def ref_of(entry: FallbackSettings, *, tier: str | None = None) -> ModelRef:
    """Return the reference for a fallback entry; an entry with only a URL is a custom endpoint."""
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
