"""From what a person types for a model to a provider and a name: aliases, prefixes, families."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hermes.codec.values import Value, replace
from hermes.models.choice import WITHIN
from hermes.models.places import Place, Places
from hermes.providers.naming import MAKERS, newest, normalise, split
from hermes.providers.vendor import Catalogue, Vendor


class Named(Value):
    """`provider` is empty where the words name none; `text` is all of them."""

    model: str
    provider: str = ""
    text: str = ""


class Names:
    """`known` tells the names of the models that a provider is known to have."""

    def __init__(
        self,
        catalogue: Catalogue,
        places: Places,
        aliases: Mapping[str, str],
        known: Callable[[Place], Iterable[str]],
    ) -> None:
        self._catalogue = catalogue
        self._places = places
        self._aliases = {word.lower(): meaning for word, meaning in aliases.items()}
        self._known = known

    def read(self, text: str) -> Named:
        """`provider:model`, and the user's own aliases, which may stand for one."""
        text = text.strip()
        meant = self._aliases.get(text.lower(), text)
        return replace(self._prefixed(meant), text=meant)

    def spelled(self, model: str, place: Place) -> str:
        """The name as this provider knows it; of a family the newest."""
        if not model or place.name in WITHIN:
            return model
        name = normalise(place.vendor, model)
        if model.lower() not in self._catalogue.shorthands:
            return name
        known = tuple(self._known(place))
        if name in known:
            return name
        return newest(self._catalogue, model, known) or name

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

    def _prefixed(self, text: str) -> Named:
        head, colon, rest = text.partition(":")
        if colon and head.lower() in WITHIN:
            return Named(model=rest, provider=head.lower())
        if colon and head.lower() == "custom":
            name, second, model = rest.partition(":")
            if second and self._places.find(f"custom:{name}") is not None:
                return Named(model=model, provider=name)
        place = self._places.find(head) if colon and rest else None
        if place is not None and place.name not in self._catalogue.vendors and not place.server:
            # A name that the user declared is no tag of a local model.
            return Named(model=rest, provider=place.name)
        vendor, model = split(self._catalogue, text)
        return Named(model=model, provider=place.name if vendor is not None and place else "")
