"""From what a person types for a model to a provider and a name: aliases, prefixes, families."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hermes.codec.values import Value, replace
from hermes.models.choice import IN_PROCESS
from hermes.models.places import ProviderEntry, ProviderNames
from hermes.providers.catalogue import ModelCatalogue, Vendor
from hermes.providers.model_names import MAKERS, newest_match, spell_for_vendor, split_model_ref


class ParsedName(Value):
    """`provider` is empty where the words name none; `text` is all of them."""

    model: str
    provider: str = ""
    text: str = ""


class ModelNames:
    """`known` tells the names of the models that a provider is known to have."""

    def __init__(
        self,
        catalogue: ModelCatalogue,
        places: ProviderNames,
        aliases: Mapping[str, str],
        known: Callable[[ProviderEntry], Iterable[str]],
    ) -> None:
        self._catalogue = catalogue
        self._places = places
        self._aliases = {word.lower(): meaning for word, meaning in aliases.items()}
        self._known = known

    def read(self, text: str) -> ParsedName:
        """`provider:model`, and the user's own aliases, which may stand for one."""
        text = text.strip()
        meant = self._aliases.get(text.lower(), text)
        return replace(self._prefixed(meant), text=meant)

    def canonical_name(self, model: str, place: ProviderEntry) -> str:
        """The name as this provider knows it; of a family the newest."""
        if not model or place.name in IN_PROCESS:
            return model
        name = spell_for_vendor(place.vendor, model)
        if model.lower() not in self._catalogue.shorthands:
            return name
        known = tuple(self._known(place))
        if name in known:
            return name
        return newest_match(self._catalogue, model, known) or name

    def suits(self, vendor: Vendor, model: str) -> bool:
        """Whether a vendor can be expected to have the model."""
        if not model or vendor.names in ("slug", "as_is"):
            return True
        head, slash, _ = model.lower().partition("/")
        own = (vendor.name, *vendor.aliases, *vendor.slugs)
        if slash:
            return head in own
        maker = next((who for start, who in MAKERS.items() if head.startswith(start)), "")
        return bool(maker) and maker in own

    def owner(self, model: str) -> Vendor | None:
        """The vendor that stands in front of `vendor/model`."""
        head, slash, rest = model.lower().partition("/")
        if not slash or not rest:
            return None
        found = self._catalogue.vendor(head)
        slugs = (v for v in self._catalogue.vendors.values() if head in v.slugs)
        return found or next(slugs, None)

    def _prefixed(self, text: str) -> ParsedName:
        head, colon, rest = text.partition(":")
        if colon and head.lower() in IN_PROCESS:
            return ParsedName(model=rest, provider=head.lower())
        if colon and head.lower() == "custom":
            name, second, model = rest.partition(":")
            if second and self._places.find(f"custom:{name}") is not None:
                return ParsedName(model=model, provider=name)
        place = self._places.find(head) if colon and rest else None
        if place is not None and place.name not in self._catalogue.vendors and not place.server:
            # A name that the user declared is no tag of a local model.
            return ParsedName(model=rest, provider=place.name)
        vendor, model = split_model_ref(self._catalogue, text)
        return ParsedName(model=model, provider=place.name if vendor is not None and place else "")
