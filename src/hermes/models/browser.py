"""Lists providers and models, finds the model that a user names, and explains which one answers."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.values import Value, replace
from hermes.config.load import Config
from hermes.core.errors import ConfigError, HermesError, NotFound
from hermes.models.model_ref import IN_PROCESS, OFFLINE, OFFLINE_MODEL, ModelRef, all_values
from hermes.models.models import KEY_AS_NAME, Models
from hermes.models.names import near_names, unlisted_message
from hermes.models.ranking import Candidate
from hermes.providers.endpoint import Endpoint
from hermes.providers.local_discovery import accepts_connections, dead_server_message
from hermes.providers.model_listing import with_tools
from hermes.providers.model_servers import detect_server, find_models_url


class ProviderRow(Value):
    """A provider that can be chosen. `problem` says what it lacks while it is not usable."""

    name: str
    label: str = ""
    usable: bool = False
    problem: str = ""
    signup: str = ""


class ModelCard(Value):
    """Facts about a model. Prices are in dollars per million tokens; None means unknown."""

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
    """The models of a provider."""

    cards: tuple[ModelCard, ...]
    live: bool = False  # they come from the provider's own list, fetched or cached
    problem: str = ""  # why they are not live


class ServerProbe(Value):
    """The server at an address: the URL of its model list ("" if it has none) and its kind."""

    url: str = ""
    kind: str = ""


class ModelPick(Value):
    """A model found by name, with warnings to show."""

    card: ModelCard
    warnings: tuple[str, ...] = ()


class ModelBrowser:
    def __init__(self, models: Models) -> None:
        self._models = models
        self._resolver = models.resolver

    def providers(self) -> tuple[ProviderRow, ...]:
        """Return all providers, usable ones first."""
        rows = [self._row(name) for name in self._resolver.providers.names()]
        return tuple(sorted(rows, key=lambda row: not row.usable))

    def known_models(self, provider: str) -> tuple[str, ...]:
        """Return the models that a provider is known to have. Makes no requests."""
        if provider in IN_PROCESS:
            return ()
        return tuple(self._resolver.known_models(self._resolver.providers.get(provider)))

    def card(self, model: str, provider: str) -> ModelCard:
        if provider in IN_PROCESS:
            window = self._models.window(model, provider)
            return ModelCard(model=model, provider=provider, window=window, included=True)
        return build_card(self._models.endpoint(model, provider))

    def card_at(self, ref: ModelRef, url: str) -> ModelCard:
        """Return the card of a model at a URL that is not configured yet."""
        return build_card(self._resolver.endpoint(replace(ref, base_url=url)))

    async def probe_server(self, url: str, key: str = "") -> ServerProbe:
        """Try the URL itself and the URL with `/v1` appended."""
        http = self._models.http
        return ServerProbe(
            url=await find_models_url(http, url, key=key), kind=await detect_server(http, url)
        )

    async def cards(self, provider: str, *, refresh: bool = False) -> ModelCards:
        """Return the models from the provider's own list (cached, or fetched within a few seconds),
        else from the shipped catalogue. Raise UsageError or ConfigError when the provider cannot be
        used."""
        if provider == OFFLINE:
            return ModelCards(cards=(self.card(OFFLINE_MODEL, OFFLINE),), live=True)
        entry = self._resolver.providers.get(provider)
        endpoint = self._resolver.endpoint(ModelRef(provider=entry.name))
        listing, problem = await self._models.listings.of(entry, endpoint, refresh=refresh)
        if listing is not None:
            names: Iterable[str] = (info.id for info in with_tools(listing.models))
        else:
            names = self._resolver.known_models(entry)
        refs = (ModelRef(provider=entry.name, model=name) for name in dict.fromkeys(names))
        cards = {card.model: card for card in map(build_card, map(self._resolver.endpoint, refs))}
        return ModelCards(cards=tuple(cards.values()), live=listing is not None, problem=problem)

    async def find(
        self,
        text: str,
        *,
        provider: str = "",
        current: str = "",
        refresh: bool = False,
        force: bool = False,
    ) -> ModelPick:
        """Find the model for typed text: an alias, `provider:model`, a family or a plain name. It
        is looked up at the given provider, else at the current one. Raise UsageError, ConfigError
        or NotFound when it cannot be used; `force` accepts a model that the provider does not list.
        Changes nothing."""
        self._models.refuse_key(text)
        named = self._resolver.names.read(text)
        where = provider or named.provider or current
        if where in IN_PROCESS:
            choice = await self._models.choose_explicit(where, named.model)
            return ModelPick(card=self.card(choice.model, choice.provider))
        entry = self._resolver.providers.get(where)
        model = named.text if provider and named.provider != entry.name else named.model
        endpoint = self._resolver.endpoint(ModelRef(provider=entry.name))
        listing, problem = await self._models.listings.of(entry, endpoint, refresh=refresh)
        model = self._resolver.names.canonical_name(model or entry.default_model, entry)
        if not model:
            raise NotFound(f"No model is named; name one of {entry.label}.")
        warnings = [problem] if problem else []
        if listing is None and _is_dead(endpoint):
            raise ConfigError(dead_server_message(endpoint.url))
        known = listing is None or model in entry.own.models or listing.serves(model)
        if listing is not None and listing.complete and not known:
            near = near_names(model, (info.id for info in listing.models))
            message = unlisted_message(entry, model, near)
            if not force:
                raise NotFound(f"{message} Nothing was changed.", near=near)
            warnings.append(message)
        card = build_card(self._resolver.endpoint(ModelRef(provider=entry.name, model=model)))
        if card.tools is False:
            warnings.append(f"{model} is not known to support tool calls.")
        return ModelPick(card=card, warnings=tuple(warnings))

    def _row(self, name: str) -> ProviderRow:
        if name in IN_PROCESS:
            return ProviderRow(name=name, label=_IN_PROCESS_LABELS[name], usable=True)
        entry = self._resolver.providers.get(name)
        row = ProviderRow(name=name, label=entry.label, signup=entry.vendor.signup)
        try:
            endpoint = self._resolver.endpoint(ModelRef(provider=name))
        except HermesError as error:
            return replace(row, problem=str(error))
        if _is_dead(endpoint):
            return replace(row, problem=f"no server answers at {endpoint.url}")
        return replace(row, usable=True)


def _is_dead(endpoint: Endpoint) -> bool:
    """Return whether the endpoint is on this machine and nothing listens there."""
    return endpoint.host in _LOCAL_HOSTS and not accepts_connections(endpoint.url)


_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_IN_PROCESS_LABELS = {"embedded": "A model file on this machine", "offline": "Offline assistant"}


def build_card(endpoint: Endpoint) -> ModelCard:
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


NOTHING = (
    "Nothing is configured: Hermes looks for a server on this machine, then for a model file, then "
    "uses the offline assistant."
)
_CHOICE_SETTINGS = ("model.default", "model.provider", "model.base_url")


class CandidateReason(Value):
    """A provider that could answer. `problem` says why it cannot be used at present."""

    provider: str
    model: str
    why: str
    host: str = ""
    wire: str = ""
    has_key: bool = False
    window: int = 0
    problem: str = ""


class ChoiceExplanation(Value):
    """Why a model answers."""

    winner: CandidateReason | None  # the candidate that answers
    shadowed: tuple[CandidateReason, ...] = ()  # the candidates after it
    # the settings behind the choice as (key, value, source), strongest first
    said: tuple[tuple[str, str, str], ...] = ()


def explain_choice(models: Models, config: Config) -> ChoiceExplanation:
    """Explain which model answers and why. Makes no requests."""
    candidates = models.resolver.candidates()
    reasons = [_reason(models, each) for each in candidates]
    values = tuple(
        (key, "***" if models.is_secret(each.value) else each.value, each.source)
        for key in _CHOICE_SETTINGS
        for each in all_values(config, key)
    )
    if not reasons:
        return ChoiceExplanation(winner=None, said=values)
    # Only a provider that somebody named is kept although it cannot be used.
    usable = (n for n, each in enumerate(candidates) if each.named or not reasons[n].problem)
    first = next(usable, 0)
    shadowed = tuple(each for n, each in enumerate(reasons) if n != first)
    return ChoiceExplanation(winner=reasons[first], shadowed=shadowed, said=values)


class ModelAnswer(Value):
    """The model that answers the next message and what chose it, or the problem instead."""

    model: str = ""
    provider: str = ""
    why: str = ""
    problem: str = ""

    def describe(self) -> str:
        if self.provider == OFFLINE:
            return "the offline assistant, which is not a language model"
        return f"{self.model} ({self.provider})" if self.model else "none"


async def find_answer(models: Models, config: Config) -> ModelAnswer:
    """Return which model answers a new session, chosen like for a chat: status, doctor and the
    slash command show the same. Requests are made only where a chat makes them, too."""
    try:
        choice = await models.choose()
    except HermesError as error:
        winner = explain_choice(models, config).winner
        why, provider = (winner.why, winner.provider) if winner else ("", "")
        return ModelAnswer(provider=provider, why=why, problem=str(error))
    answer = ModelAnswer(model=choice.model, provider=choice.provider, why=choice.why)
    endpoint = models.find_endpoint(choice.model, choice.provider)
    if endpoint is not None and _is_dead(endpoint):
        return replace(answer, problem=dead_server_message(endpoint.url))
    return answer


def _reason(models: Models, candidate: Candidate) -> CandidateReason:
    provider, model, why = candidate.provider, candidate.model, candidate.why
    if models.is_secret(model):
        return CandidateReason(provider=provider, model="***", why=why, problem=KEY_AS_NAME)
    if provider in IN_PROCESS:
        problem = models.in_process_problem(model, provider)
        return CandidateReason(provider=provider, model=model, why=why, problem=problem)
    try:
        entry = models.resolver.providers.get(provider)
        ref = ModelRef(provider=provider, model=model or entry.default_model)
        endpoint = models.resolver.endpoint(ref)
    except HermesError as error:
        return CandidateReason(provider=provider, model=model, why=why, problem=str(error))
    return CandidateReason(
        provider=endpoint.name,
        model=endpoint.model,
        why=why,
        host=endpoint.host,
        wire=endpoint.wire,
        has_key=bool(endpoint.key),
        window=endpoint.profile.window,
    )
