"""Ranks the providers that could answer, by settings, keys and logins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes.codec.values import Value, replace
from hermes.config.load import Config
from hermes.models.model_ref import (
    CUSTOM,
    EMBEDDED,
    OFFLINE,
    UNSET,
    all_values,
    effective_value,
)
from hermes.models.names import ModelNames, ProviderNames
from hermes.providers.endpoint import is_plausible_key
from hermes.providers.model_catalogue import ModelCatalogue


class Candidate(Value):
    """A provider with the model named for it, and the reason. A `named` candidate is used or
    refused, never skipped."""

    provider: str
    model: str = ""
    why: str = ""
    named: bool = False


class ProviderRanking:
    """Ranks the providers that could answer. `logged_in` lists those with credentials in
    auth.json."""

    def __init__(
        self,
        config: Config,
        catalogue: ModelCatalogue,
        providers: ProviderNames,
        names: ModelNames,
        logged_in: Callable[[], tuple[str, ...]],
    ) -> None:
        self._config = config
        self._catalogue = catalogue
        self._provider_names = providers
        self._names = names
        self._logged_in = logged_in
        self._model = effective_value(config, "model.default")
        self._named = names.read(self._model.value)

    def rank_providers(self) -> Iterator[Candidate]:
        """Yield the candidates, strongest first; a provider may appear more than once."""
        yield from self._explicit()
        secrets, model = self._config.secrets, self._named.model
        variable = self._catalogue.vendors[CUSTOM].url_env
        if source := secrets.source(variable):
            why = f"{variable} in {_describe_source(source)}"
            yield Candidate(provider=CUSTOM, model=model, why=why)
        for name, own in self._config.settings.providers.items():
            if own.enabled and own.base_url:
                why = f"providers.{name} in config.yaml"
                yield Candidate(provider=name, model=model, why=why)
        yield from self._from_keys()
        for name in self._logged_in():
            entry = self._provider_names.find(name)
            if entry is not None and entry.vendor.auto:
                yield Candidate(provider=entry.name, model=model, why="a login in auth.json")

    def _explicit(self) -> Iterator[Candidate]:
        """Yield the providers named by flag, session, file or variable. A provider prefix in the
        model name ranks like the source of the model name."""
        rows = all_values(self._config, "model.provider")
        address = effective_value(self._config, "model.base_url")
        if address.rank < UNSET and not any(row.rank == address.rank for row in rows):
            # A base URL without a provider at the same level.
            source = f"model.base_url, {address.source}"
            rows.append(replace(address, value=CUSTOM, source=source))
        prefix = EMBEDDED if self._named.model.endswith(".gguf") else ""
        if provider := self._named.provider or prefix:
            rows.append(replace(self._model, value=provider))
        for row in sorted(rows, key=lambda row: row.rank):
            provider = self._route_by_model(row.value, row.rank)
            model = self._model_for(provider, row.rank)
            yield Candidate(provider=provider, model=model, why=row.source, named=True)

    def _route_by_model(self, provider: str, rank: int) -> str:
        """Return the provider for the model. A model name such as `anthropic/…` from a stronger
        source than the provider selects its vendor, if the provider serves only its own models and
        the vendor's key is set."""
        entry, owner = self._provider_names.find(provider), self._names.owner(self._named.model)
        if entry is None or owner is None or rank <= self._model.rank:
            return provider
        direct = entry.vendor.names == "own" and not self._names.suits(
            entry.vendor, self._named.model
        )
        return owner.name if direct and self._variable(owner.keys) else provider

    def _model_for(self, provider: str, rank: int) -> str:
        """Return the model for a provider. A provider named over a weaker choice of model uses its
        default model, unless it probably serves the chosen one. A model named at the same level is
        taken as it is."""
        entry, named = self._provider_names.find(provider), self._named
        if provider == OFFLINE and rank < self._model.rank:
            return ""
        if entry is None or entry.name == named.provider:
            return named.model
        if rank == self._model.rank or not named.provider:
            is_stronger = rank < self._model.rank
            keeps = self._names.suits(entry.vendor, named.model) and not entry.own.default_model
            return named.text if keeps or not is_stronger else ""
        return ""

    def _from_keys(self) -> Iterator[Candidate]:
        """Yield the vendors whose key is set; those that probably serve the model come first."""
        rows = []
        for vendor in self._catalogue.vendors.values():
            variable = self._variable(vendor.keys) if vendor.auto else ""
            if variable and (vendor.url or self._config.secrets.get(vendor.url_env)):
                suits = self._names.suits(vendor, self._named.model)
                source = _describe_source(self._config.secrets.source(variable) or "")
                rows.append((not suits, vendor.name, f"{variable} in {source}"))
        for _, name, why in sorted(rows, key=lambda row: row[0]):
            yield Candidate(provider=name, model=self._named.model, why=why)

    def _variable(self, names: tuple[str, ...]) -> str:
        return next(
            (name for name in names if is_plausible_key(self._config.secrets.get(name))), ""
        )


def _describe_source(source: str) -> str:
    return "the environment" if source == "environment" else source
