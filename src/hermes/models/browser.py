"""What can be chosen: providers and whether they can be used, their models and what is known."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.values import Value, replace
from hermes.core.errors import HermesError, NotFound
from hermes.models.model_ref import CUSTOM, IN_PROCESS, OFFLINE, OFFLINE_MODEL, ModelRef
from hermes.models.models import Models
from hermes.models.names import ProviderEntry, near_names
from hermes.providers.endpoint import Endpoint
from hermes.providers.local_discovery import accepts_connections
from hermes.providers.model_listing import with_tools
from hermes.providers.model_servers import ModelListing, detect_server, find_models_url


class ProviderRow(Value):
    """A provider that may be chosen; `problem` says what is missing until it can be used."""

    name: str
    label: str = ""
    usable: bool = False
    problem: str = ""
    signup: str = ""


class ModelCard(Value):
    """What is known of a model. Prices are dollars per million tokens; None is not known."""

    model: str
    provider: str
    host: str = ""
    wire: str = ""
    window: int = 0
    price_input: float | None = None
    price_output: float | None = None
    included: bool = False
    vision: bool | None = None
    tools: bool | None = None


class ModelCards(Value):
    """The models of a provider; `live` when its own list was asked or kept, else `problem` says
    why that could not be."""

    cards: tuple[ModelCard, ...]
    live: bool = False
    problem: str = ""


class ServerProbe(Value):
    """What is at an address: where its models are listed ("" for nowhere), which kind of server."""

    url: str = ""
    kind: str = ""


class ModelPick(Value):
    """A model that was found by its name, and what should be said about it."""

    card: ModelCard
    warnings: tuple[str, ...] = ()


class ModelBrowser:
    def __init__(self, models: Models) -> None:
        self._models = models
        self._resolver = models.resolver

    def providers(self) -> tuple[ProviderRow, ...]:
        """All of them, those that can be used first."""
        rows = [self._row(name) for name in self._resolver.places.names()]
        return tuple(sorted(rows, key=lambda row: not row.usable))

    def known_models(self, provider: str) -> tuple[str, ...]:
        """The models that a provider is known to have, as far as nobody need be asked."""
        if provider in IN_PROCESS:
            return ()
        return tuple(self._resolver.known_models(self._resolver.places.get(provider)))

    def card(self, model: str, provider: str) -> ModelCard:
        if provider in IN_PROCESS:
            window = self._models.window(model, provider)
            return ModelCard(model=model, provider=provider, window=window, included=True)
        return card_of(self._models.endpoint(model, provider))

    def card_at(self, wish: ModelRef, url: str) -> ModelCard:
        """Of a model at an address that is not configured yet."""
        return card_of(self._resolver.endpoint(replace(wish, base_url=url)))

    async def probe_server(self, url: str, key: str = "") -> ServerProbe:
        """At the address itself, and with `/v1` behind it."""
        http = self._models.http
        return ServerProbe(
            url=await find_models_url(http, url, key=key), kind=await detect_server(http, url)
        )

    async def cards(self, provider: str, *, refresh: bool = False) -> ModelCards:
        """From the provider's own list, kept or asked for within a few seconds, else from what is
        shipped. UsageError or ConfigError when the provider cannot be used."""
        if provider == OFFLINE:
            return ModelCards(cards=(self.card(OFFLINE_MODEL, OFFLINE),), live=True)
        place = self._resolver.places.get(provider)
        endpoint = self._resolver.endpoint(ModelRef(provider=place.name))
        listing, problem = await self._models.lists.of(place, endpoint, refresh=refresh)
        if listing is not None:
            names: Iterable[str] = (info.id for info in with_tools(listing.models))
        else:
            names = self._resolver.known_models(place)
        wishes = (ModelRef(provider=place.name, model=name) for name in dict.fromkeys(names))
        cards = {card.model: card for card in map(card_of, map(self._resolver.endpoint, wishes))}
        return ModelCards(cards=tuple(cards.values()), live=listing is not None, problem=problem)

    async def find(
        self, text: str, *, provider: str = "", current: str = "", refresh: bool = False
    ) -> ModelPick:
        """The model that somebody typed: alias, `provider:model`, family or plain name, on the
        provider that was named, else on the current one. UsageError, ConfigError or NotFound when
        it cannot be used; nothing is changed in any case."""
        self._models.refuse_key(text)
        named = self._resolver.names.read(text)
        where = provider or named.provider or current
        if where in IN_PROCESS:
            choice = await self._models.choose_explicit(where, named.model)
            return ModelPick(card=self.card(choice.model, choice.provider))
        place = self._resolver.places.get(where)
        model = named.text if provider and named.provider != place.name else named.model
        endpoint = self._resolver.endpoint(ModelRef(provider=place.name))
        listing, problem = await self._models.lists.of(place, endpoint, refresh=refresh)
        model = self._resolver.names.canonical_name(model or place.default_model, place)
        if not model:
            raise NotFound(f"Name a model of {place.label}.")
        warnings = [problem] if problem else []
        if listing is not None and not _is_listed(listing, model):
            warnings.append(self._unlisted(place, model, listing))
        card = card_of(self._resolver.endpoint(ModelRef(provider=place.name, model=model)))
        if card.tools is False:
            warnings.append(f"{model} is not known to call tools.")
        return ModelPick(card=card, warnings=tuple(warnings))

    def _unlisted(self, place: ProviderEntry, model: str, listing: ModelListing) -> str:
        """A vendor that does not name a model does not have it; an endpoint of one's own may."""
        names = tuple(info.id for info in listing.models)
        near = near_names(model, names)
        words = f"{place.label} does not list {model!r}"
        hint = f"; near: {', '.join(near)}" if near else ""
        if place.vendor.name == CUSTOM or place.vendor.key_optional:
            return f"{words}{hint}."
        raise NotFound(f"{words}{hint}. Nothing was changed.", near=near)

    def _row(self, name: str) -> ProviderRow:
        if name in IN_PROCESS:
            return ProviderRow(name=name, label=_INSIDE[name], usable=True)
        place = self._resolver.places.get(name)
        row = ProviderRow(name=name, label=place.label, signup=place.vendor.signup)
        try:
            endpoint = self._resolver.endpoint(ModelRef(provider=name))
        except HermesError as error:
            return replace(row, problem=str(error))
        if endpoint.host in _HERE and not accepts_connections(endpoint.url):
            return replace(row, problem=f"no server answers at {endpoint.url}")
        return replace(row, usable=True)


_HERE = ("127.0.0.1", "localhost", "::1")
_INSIDE = {"embedded": "A model file on this machine", "offline": "Offline assistant"}


def card_of(endpoint: Endpoint) -> ModelCard:
    profile = endpoint.profile
    known = profile.price is not None and not profile.included
    return ModelCard(
        model=endpoint.model,
        provider=endpoint.name,
        host=endpoint.host,
        wire=endpoint.wire,
        window=profile.window,
        price_input=profile.price.input if known and profile.price else None,
        price_output=profile.price.output if known and profile.price else None,
        included=profile.included,
        vision=profile.images,
        tools=profile.tools,
    )


def _is_listed(listing: ModelListing, model: str) -> bool:
    """Vendors list dated versions and understand the names without the date."""
    found = listing.find(model) is not None
    return found or any(info.id.startswith(f"{model}-20") for info in listing.models)
