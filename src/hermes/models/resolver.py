"""The one way from a wish for a model to an endpoint: address, key, wire, window. No network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermes.codec.json import plain
from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import JsonObject, Value
from hermes.config.load import Config
from hermes.core.errors import ConfigError, HermesError
from hermes.models.model_ref import CUSTOM, ModelRef, provider_of_value
from hermes.models.names import ModelNames, ProviderEntry, ProviderNames
from hermes.models.ranking import Candidate, ProviderRanking
from hermes.net.addresses import host_of, is_local
from hermes.providers.catalogue import ModelCatalogue
from hermes.providers.context_window import ContextWindow, LearnedWindows, WindowLearner
from hermes.providers.context_window import context_window as known_window
from hermes.providers.endpoint import Endpoint, UrlSource, is_plausible_key, key_variable_for_host
from hermes.providers.local_discovery import LOCAL_PORTS
from hermes.providers.model_names import spell_for_vendor
from hermes.providers.model_servers import ModelListing, ModelListingCache
from hermes.providers.profile_building import RequestOptions

LEARNED = "context_length_cache.yaml"


class ResolvedAddress(Value):
    url: str = ""
    source: UrlSource = ""


class ResolvedKey(Value):
    """`source` is the variable that holds it; "" for one that was written beside the address."""

    value: str = ""
    source: str = ""


class Resolver:
    """Serves chats, jobs, sub-sessions and side tasks alike. `logged_in` tells which providers
    have keys in auth.json."""

    def __init__(
        self,
        config: Config,
        catalogue: ModelCatalogue,
        listings: ModelListingCache,
        logged_in: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.catalogue = catalogue
        self.places = ProviderNames(catalogue, config.settings.providers)
        self.names = ModelNames(
            catalogue, self.places, config.settings.model_aliases, known=self.known_models
        )
        self._config = config
        self._settings = config.settings
        self._listings = listings
        self._learned = LearnedWindows(config.home.root / LEARNED)
        self._logged_in = logged_in
        self.cache: TtlCache[Endpoint] = TtlCache()

    def candidates(self) -> tuple[Candidate, ...]:
        """Who could answer, strongest first; the first one does."""
        return tuple(self.rank_candidates())

    def rank_candidates(self) -> Iterator[Candidate]:
        """The same, looked for one after the other: the first is mostly all that is wanted."""
        table = ProviderRanking(
            self._config, self.catalogue, self.places, self.names, self._logged_in
        )
        return table.rank_providers()

    def endpoint(self, wish: ModelRef) -> Endpoint:
        """Where to ask. UsageError for an unknown provider; ConfigError when the provider has no
        key or address, naming the variable that would give it one."""
        if wish.extra_body:
            return self._endpoint(wish)
        key = (wish.provider, wish.model, wish.base_url, wish.api_key, wish.key_env)
        return self.cache.get((*key, wish.context_length, wish.tier), lambda: self._endpoint(wish))

    def _endpoint(self, wish: ModelRef) -> Endpoint:
        place = self.places.get(wish.provider)
        address = self._address(place, wish)
        key = self._key(place, wish, address)
        model = self.names.canonical_name(wish.model, place)
        url = address.url or place.vendor.url
        listing = self._listings.cached(url)
        configured = self._window(place, wish, model)
        window = self._known_window(place, model, url, configured, listing)
        endpoint = self.catalogue.endpoint(
            place.vendor,
            model,
            key=key.value,
            key_source=key.source,
            url=address.url,
            url_source=address.source or "config",
            api_mode=place.own.api_mode or self._saved_address(place, "model.api_mode"),
            saved=not place.own.api_mode,
            name=place.name,
            headers=place.own.extra_headers,
            overrides=self._overrides(place, model, configured),
            options=self._options(place, wish),
            info=listing.find(model) if listing is not None else None,
            window=window.tokens,
            server=place.server or _server_at(address.url),
        )
        if not endpoint.key and not self._works_without_key(place, wish, endpoint):
            raise ConfigError(self._no_key(place, wish))
        return endpoint

    def guesses_window(self, wish: ModelRef) -> bool:
        """Nobody has told how much this model takes at once."""
        place = self.places.get(wish.provider)
        url = self._address(place, wish).url or place.vendor.url
        model = self.names.canonical_name(wish.model, place)
        configured = self._window(place, wish, model)
        found = self._known_window(place, model, url, configured, self._listings.cached(url))
        return found.source == "guess"

    def lessons(self, endpoint: Endpoint) -> WindowLearner:
        """Where what is learned about this model's window is kept."""
        return WindowLearner(self._learned, endpoint.model, endpoint.url, endpoint.profile.window)

    def key_source(self, wish: ModelRef) -> str:
        """The variable that holds the key for this wish; "" when it comes from elsewhere."""
        place = self.places.get(wish.provider)
        named = wish.key_env or ("" if wish.api_key or place.own.api_key else place.own.key_env)
        return named or self._key(place, wish, self._address(place, wish)).source

    def can_reach(self, wish: ModelRef) -> bool:
        """Whether everything is there to ask; nobody is asked."""
        try:
            self.endpoint(wish)
        except HermesError:
            return False
        return True

    def is_ambiguous(self, model: str, place: ProviderEntry) -> bool:
        """Whether this is the name of a family, of which no member is known here."""
        family = model.lower() in self.catalogue.shorthands
        return family and self.names.canonical_name(model, place) == spell_for_vendor(
            place.vendor, model
        )

    def known_models(self, place: ProviderEntry) -> Iterable[str]:
        """Names of models that the provider is known to have, listed or shipped."""
        url = self._address(place, ModelRef(provider=place.name)).url or place.vendor.url
        listing: ModelListing | None = self._listings.cached(url) if url else None
        yield from place.own.models
        if listing is not None:
            yield from (info.id for info in listing.models)
            return
        vendor = place.vendor
        yield from (name for name in (vendor.default_model, vendor.aux_model) if name)
        if vendor.hyphens:
            # Price lists spell all names with hyphens, which is right for few vendors.
            own = (sheet for sheet in self.catalogue.sheets if vendor.name in sheet.vendors)
            yield from (name for sheet in own for name in sheet.models)

    def _address(self, place: ProviderEntry, wish: ModelRef) -> ResolvedAddress:
        if (
            given := wish.base_url
            or place.own.base_url
            or self._saved_address(place, "model.base_url")
        ):
            return ResolvedAddress(url=given, source="config")
        variable = place.vendor.url_env
        if variable and (given := self._config.secrets.get(variable)) and not place.server:
            return ResolvedAddress(url=given, source="env")
        return ResolvedAddress(url=place.usual_url, source="config" if place.usual_url else "")

    def _key(self, place: ProviderEntry, wish: ModelRef, address: ResolvedAddress) -> ResolvedKey:
        secrets, own = self._config.secrets, place.own
        if wish.api_key or wish.key_env:
            return ResolvedKey(value=wish.api_key or secrets.get(wish.key_env))
        if own.api_key or own.key_env:
            return ResolvedKey(value=own.api_key or secrets.get(own.key_env))
        if not wish.base_url and is_plausible_key(
            given := self._saved_address(place, "model.api_key")
        ):
            return ResolvedKey(value=given)
        # A variable that is named after the host was made for it.
        own_name = key_variable_for_host(self.catalogue, address.url) if address.url else ""
        for name in (own_name, *place.vendor.keys):
            if name and is_plausible_key(value := secrets.get(name)):
                return ResolvedKey(value=value, source=name)
        return ResolvedKey()

    def _saved_address(self, place: ProviderEntry, key: str) -> str:
        """A value of `model` in the settings, if it was written for this provider."""
        value: str = getattr(self._settings.model, key.partition(".")[2])
        if not value:
            return ""
        owner = self.places.find(provider_of_value(self._config, key) or CUSTOM)
        return value if owner is not None and owner.name == place.name else ""

    def _known_window(
        self,
        place: ProviderEntry,
        model: str,
        url: str,
        configured: int | None,
        listing: ModelListing | None,
    ) -> ContextWindow:
        return known_window(
            self.catalogue, place.vendor, model, url,
            configured=configured, learned=self._learned, listing=listing,
        )  # fmt: skip

    def _window(self, place: ProviderEntry, wish: ModelRef, model: str) -> int | None:
        declared = place.own.models.get(model)
        if window := wish.context_length or (declared and declared.context_length):
            return window
        model_settings = self._settings.model
        default = self.names.read(model_settings.default).model
        meant = not default or self.names.canonical_name(default, place) == model
        return model_settings.context_length if meant else None

    def _overrides(self, place: ProviderEntry, model: str, window: int | None) -> JsonObject:
        declared = place.own.models.get(model)
        found: JsonObject = plain(declared) if declared is not None else {}
        if window:
            found["context_length"] = window
        return found

    def _options(self, place: ProviderEntry, wish: ModelRef) -> RequestOptions:
        settings = self._settings
        cache = settings.openrouter
        return RequestOptions(
            routing=plain(settings.provider_routing),
            response_cache_seconds=cache.response_cache_ttl if cache.response_cache else None,
            service_tier=settings.agent.service_tier if wish.tier is None else wish.tier,
            num_ctx=settings.model.ollama_num_ctx,
            body={**place.own.extra_body, **wish.extra_body},
        )

    def _works_without_key(self, place: ProviderEntry, wish: ModelRef, endpoint: Endpoint) -> bool:
        if wish.key_env or place.own.key_env:
            return False
        vendor = place.vendor
        if endpoint.is_local or vendor.key_optional or vendor.login == "none":
            return True
        return place.name in self._logged_in()

    def _no_key(self, place: ProviderEntry, wish: ModelRef) -> str:
        name = wish.key_env or place.own.key_env
        if not name and not place.vendor.keys:
            return f"{place.label} needs a login; run `hermes auth add {place.name}`."
        name = name or place.vendor.keys[0]
        there = self._config.secrets.get(name)
        if there and is_plausible_key(there):
            return (
                f"The key in {name} belongs to {place.vendor.label} and is not sent to "
                f"{host_of(self._address(place, wish).url)}; give that address a key of its own."
            )
        state = "holds no usable key" if there else "is not set"
        return (
            f"{place.label} needs a key, and {name} {state}; run "
            f"`hermes config set {name} …` or choose another provider with `hermes model`."
        )


def _server_at(url: str) -> str:
    """The kind of server that listens at this port of a machine of one's own, by custom."""
    if not is_local(host_of(url)):
        return ""
    return "ollama" if f":{LOCAL_PORTS[0].port}" in url else ""
