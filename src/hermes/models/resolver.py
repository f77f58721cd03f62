"""Resolves a model reference to an endpoint: address, key, wire format and window. Makes no
requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hermes.codec.json import plain
from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import JsonObject
from hermes.config.load import Config
from hermes.core.errors import ConfigError, HermesError
from hermes.models.model_ref import (
    CUSTOM,
    ConfiguredValue,
    ModelRef,
    effective_value,
    provider_of_value,
)
from hermes.models.names import ModelNames, ProviderEntry, ProviderNames
from hermes.models.ranking import Candidate, ProviderRanking
from hermes.net.addresses import host_of, is_local
from hermes.providers.context_window import ContextWindow, LearnedWindows, WindowLearner
from hermes.providers.context_window import context_window as known_window
from hermes.providers.endpoint import (
    Endpoint,
    UrlSource,
    is_plausible_key,
    key_variable_for_host,
    read_key,
)
from hermes.providers.local_discovery import LOCAL_PORTS
from hermes.providers.model_catalogue import ModelCatalogue
from hermes.providers.model_names import spell_for_vendor
from hermes.providers.model_servers import ModelListing, ModelListingCache
from hermes.providers.profile_building import RequestOptions

LEARNED = "context_length_cache.yaml"


class ResolvedAddress(NamedTuple):
    url: str
    source: UrlSource


class ResolvedKey(NamedTuple):
    """A key and its origin."""

    value: str = ""
    source: str = ""  # the variable that holds the key; "" for a key configured next to the address


class Resolver:
    """Resolves model references to endpoints, for chats, jobs, sub-sessions and side tasks.
    `logged_in` lists the providers with credentials in auth.json; `has_other_program` returns
    whether another program may have a login for a provider."""

    def __init__(
        self,
        config: Config,
        catalogue: ModelCatalogue,
        listings: ModelListingCache,
        logged_in: Callable[[], tuple[str, ...]] = tuple,
        has_other_program: Callable[[str], bool] = lambda _provider: False,
    ) -> None:
        self.catalogue = catalogue
        self.providers = ProviderNames(catalogue, config.settings.providers)
        self.names = ModelNames(
            catalogue, self.providers, config.settings.model_aliases, known_models=self.known_models
        )
        self._config = config
        self._settings = config.settings
        self._listings = listings
        self._learned = LearnedWindows(config.home.root / LEARNED)
        self._logged_in = logged_in
        self._has_other_program = has_other_program
        self.cache: TtlCache[Endpoint] = TtlCache()

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the providers that could answer, strongest first; the first one does."""
        return tuple(self.rank_candidates())

    def rank_candidates(self) -> Iterator[Candidate]:
        """Yield the same as `candidates`, computed lazily: usually only the first is needed."""
        ranking = ProviderRanking(
            self._config, self.catalogue, self.providers, self.names, self._logged_in
        )
        return ranking.rank_providers()

    def named_model(self) -> ConfiguredValue | None:
        """Return the model name that takes effect, or None."""
        found = effective_value(self._config, "model.default")
        return found if found.value else None

    def explain_unserved(self, model: str) -> str:
        """Return the error for a model that was named without a usable provider."""
        vendors = self.catalogue.vendors.values()
        owner = self.names.owner(model) or next(
            (v for v in vendors if v.names == "own" and v.keys and self.names.suits(v, model)), None
        )
        if owner is not None and owner.keys:
            return (
                f"{model} needs a key of {owner.label}, and {owner.keys[0]} is not set; run "
                f"`hermes config set {owner.keys[0]} …`, or choose another with `hermes model`."
            )
        return (
            f"Nothing here serves a model named {model!r}: no provider is configured, and no "
            "server on this machine lists it; `hermes setup` shows what can be used."
        )

    def endpoint(self, ref: ModelRef) -> Endpoint:
        """Build the endpoint of a model. Raise UsageError for an unknown provider, and ConfigError
        when the provider has no key or address; the message names the variable to set."""
        if ref.extra_body:
            return self._resolve_endpoint(ref)
        key = (ref.provider, ref.model, ref.base_url, ref.api_key, ref.key_env)
        return self.cache.get(
            (*key, ref.context_length, ref.tier), lambda: self._resolve_endpoint(ref)
        )

    def _resolve_endpoint(self, ref: ModelRef) -> Endpoint:
        entry = self.providers.get(ref.provider)
        address = self._address(entry, ref)
        key = self._key(entry, ref, address)
        model = self.names.canonical_name(ref.model, entry)
        url = address.url or entry.vendor.url
        window, listing = self._known_window(entry, ref, model, url)
        declared = entry.own.models.get(model)
        overrides: JsonObject = plain(declared) if declared is not None else {}
        if window.source == "user":
            overrides["context_length"] = window.tokens
        config, settings = self._config, self._settings
        cache = settings.openrouter
        options = RequestOptions(
            routing=plain(settings.provider_routing),
            response_cache_seconds=cache.response_cache_ttl if cache.response_cache else None,
            service_tier=settings.agent.service_tier if ref.tier is None else ref.tier,
            num_ctx=settings.model.ollama_num_ctx,
            body={**entry.own.extra_body, **ref.extra_body},
        )
        # Ollama is recognized by its usual port on this machine.
        by_port = is_local(host_of(address.url)) and f":{LOCAL_PORTS[0].port}" in address.url
        endpoint = self.catalogue.endpoint(
            entry.vendor,
            model,
            key=key.value,
            key_source=key.source,
            url=address.url,
            url_source=address.source or "config",
            api_mode=entry.own.api_mode or self._saved_value(entry, "model.api_mode"),
            saved=not entry.own.api_mode and effective_value(config, "model.api_mode").rank > 0,
            name=entry.name,
            headers=entry.own.extra_headers,
            overrides=overrides,
            options=options,
            info=listing.find(model) if listing is not None else None,
            window=window.tokens,
            server=entry.server or ("ollama" if by_port else ""),
        )
        if not endpoint.key and not self._works_without_key(entry, ref, endpoint):
            raise ConfigError(self._no_key(entry, ref))
        return endpoint

    def guesses_window(self, ref: ModelRef) -> bool:
        """Return whether the context window of this model is only a guess."""
        entry = self.providers.get(ref.provider)
        model = self.names.canonical_name(ref.model, entry)
        url = self._address(entry, ref).url or entry.vendor.url
        return self._known_window(entry, ref, model, url)[0].source == "guess"

    def window_learner(self, endpoint: Endpoint) -> WindowLearner:
        """Return the object that stores what is learned about this model's context window."""
        return WindowLearner(self._learned, endpoint.model, endpoint.url, endpoint.profile.window)

    def key_source(self, ref: ModelRef) -> str:
        """Return the variable that holds the key for this model; "" when the key comes from
        elsewhere."""
        entry = self.providers.get(ref.provider)
        named = ref.key_env or ("" if ref.api_key or entry.own.api_key else entry.own.key_env)
        return named or self._key(entry, ref, self._address(entry, ref)).source

    def url_source(self, ref: ModelRef) -> UrlSource:
        """Return where the address for this model comes from."""
        return self._address(self.providers.get(ref.provider), ref).source

    def can_reach(self, ref: ModelRef) -> bool:
        """Return whether the model could be requested now. Makes no requests."""
        try:
            self.endpoint(ref)
        except HermesError:
            return False
        return True

    def is_ambiguous(self, model: str, entry: ProviderEntry) -> bool:
        """Return whether this is a family name without a known model."""
        family = model.lower() in self.catalogue.shorthands
        return family and self.names.canonical_name(model, entry) == spell_for_vendor(
            entry.vendor, model
        )

    def known_models(self, entry: ProviderEntry) -> Iterable[str]:
        """Yield the models that the provider is known to have, from its list or the shipped
        catalogue."""
        url = self._address(entry, ModelRef(provider=entry.name)).url or entry.vendor.url
        listing: ModelListing | None = self._listings.cached(url) if url else None
        yield from entry.own.models
        if listing is not None:
            yield from (info.id for info in listing.models)
            return
        vendor = entry.vendor
        yield from (name for name in (vendor.default_model, vendor.aux_model) if name)
        if vendor.hyphens:
            # Price lists spell names with hyphens, which is correct for few vendors only.
            own = (sheet for sheet in self.catalogue.sheets if vendor.name in sheet.vendors)
            yield from (name for sheet in own for name in sheet.models)

    def _address(self, entry: ProviderEntry, ref: ModelRef) -> ResolvedAddress:
        saved = self._saved_value(entry, "model.base_url")
        if url := ref.base_url or entry.own.base_url or saved:
            return ResolvedAddress(url, "config")
        variable = entry.vendor.url_env
        if variable and (url := self._config.secrets.get(variable)) and not entry.server:
            return ResolvedAddress(url, "env")
        if entry.vendor.login == "vertex":
            # Imported on demand: few homes use it.
            from hermes.credentials.google import vertex_url

            return ResolvedAddress(vertex_url(self._config.secrets.get), "env")
        return ResolvedAddress(entry.default_url, "config" if entry.default_url else "")

    def _key(self, entry: ProviderEntry, ref: ModelRef, address: ResolvedAddress) -> ResolvedKey:
        secrets, own = self._config.secrets, entry.own
        if ref.api_key or ref.key_env:
            return ResolvedKey(ref.api_key or secrets.get(ref.key_env))
        if own.api_key or own.key_env:
            return ResolvedKey(own.api_key or secrets.get(own.key_env))
        saved = "" if ref.base_url else self._saved_value(entry, "model.api_key")
        if is_plausible_key(saved):
            return ResolvedKey(saved)
        # A variable named after the host is meant for it.
        own_name = key_variable_for_host(self.catalogue, address.url) if address.url else ""
        for name in (own_name, *entry.vendor.keys):
            if name and is_plausible_key(value := read_key(secrets.get, name)):
                return ResolvedKey(value, name)
        return ResolvedKey()

    def _saved_value(self, entry: ProviderEntry, key: str) -> str:
        """Return a `model` setting, if it belongs to this provider."""
        value: str = getattr(self._settings.model, key.partition(".")[2])
        if not value:
            return ""
        owner = self.providers.find(provider_of_value(self._config, key) or CUSTOM)
        return value if owner is not None and owner.name == entry.name else ""

    def _known_window(
        self, entry: ProviderEntry, ref: ModelRef, model: str, url: str
    ) -> tuple[ContextWindow, ModelListing | None]:
        """Return the context window, and the cached model list that it may come from."""
        listing = self._listings.cached(url)
        configured = self._window(entry, ref, model)
        found = known_window(
            self.catalogue, entry.vendor, model, url,
            configured=configured, learned=self._learned, listing=listing,
        )  # fmt: skip
        return found, listing

    def _window(self, entry: ProviderEntry, ref: ModelRef, model: str) -> int | None:
        declared = entry.own.models.get(model)
        if window := ref.context_length or (declared and declared.context_length):
            return window
        model_settings = self._settings.model
        default = self.names.read(model_settings.default).model
        applies = not default or self.names.canonical_name(default, entry) == model
        return model_settings.context_length if applies else None

    def _works_without_key(self, entry: ProviderEntry, ref: ModelRef, endpoint: Endpoint) -> bool:
        if ref.key_env or entry.own.key_env:
            return False
        vendor = entry.vendor
        if endpoint.is_local or vendor.key_optional or vendor.login == "none":
            return True
        return entry.name in self._logged_in() or self._has_other_program(entry.name)

    def _no_key(self, entry: ProviderEntry, ref: ModelRef) -> str:
        name = ref.key_env or entry.own.key_env
        if not name and not entry.vendor.keys:
            return f"{entry.label} needs a login; run `hermes auth add {entry.name}`."
        name = name or entry.vendor.keys[0]
        value = self._config.secrets.get(name)
        if value and is_plausible_key(value):
            return (
                f"The key in {name} belongs to {entry.vendor.label} and is not sent to "
                f"{host_of(self._address(entry, ref).url)}; "
                "configure a separate key for that address."
            )
        state = "holds no usable key" if value else "is not set"
        return (
            f"{entry.label} needs a key, and {name} {state}; run "
            f"`hermes config set {name} …` or choose another provider with `hermes model`."
        )
