"""Names of providers and models: aliases, prefixes, families, near misses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hermes.codec.values import Value, replace
from hermes.config.provider_settings import ProviderSettings
from hermes.core.errors import ConfigError, UsageError
from hermes.models.model_ref import CUSTOM, IN_PROCESS
from hermes.providers.catalogue import ModelCatalogue, Vendor
from hermes.providers.local_discovery import HOST, LOCAL_PORTS
from hermes.providers.model_names import MAKERS, newest_match, spell_for_vendor, split_model_ref

_PREFIX = f"{CUSTOM}:"
_NEAR = 3
_SERVERS = {place.label.lower().replace(".", "").replace(" ", ""): place for place in LOCAL_PORTS}


class ProviderEntry(Value):
    """`name` is how the provider is recorded and shown; `server` is a kind of server that people
    run themselves, when the name says so."""

    name: str
    vendor: Vendor
    own: ProviderSettings = ProviderSettings()
    server: str = ""

    @property
    def label(self) -> str:
        return self.own.name or (self.vendor.label if self.name == self.vendor.name else self.name)

    @property
    def usual_url(self) -> str:
        """Where a server of this kind listens unless told otherwise."""
        place = _SERVERS.get(self.server)
        return f"http://{HOST}:{place.port}/v1" if place is not None else ""

    @property
    def default_model(self) -> str:
        return self.own.default_model or self.vendor.default_model


class ProviderNames:
    """A canonical name beats one that the user declared, and that beats an alias."""

    def __init__(self, catalogue: ModelCatalogue, declared: dict[str, ProviderSettings]) -> None:
        self._catalogue = catalogue
        self._declared = declared

    def find(self, name: str) -> ProviderEntry | None:
        """None when there is no such provider."""
        vendors, low = self._catalogue.vendors, name.strip().lower()
        bare = name.strip()[len(_PREFIX) :] if low.startswith(_PREFIX) else name.strip()
        if low in vendors:
            return self._place(low, vendors[low], low)
        if bare in self._declared:
            return self._place(bare, vendors[CUSTOM], bare)
        vendor = self._catalogue.vendor(low)
        if vendor is None:
            return None
        return self._place(low if low in self._catalogue.servers else vendor.name, vendor, low)

    def _place(self, name: str, vendor: Vendor, said: str) -> ProviderEntry:
        server = said.lower() if said.lower() in self._catalogue.servers else ""
        own = self._declared.get(name, ProviderSettings())
        return ProviderEntry(name=name, vendor=vendor, own=own, server=server)

    def get(self, name: str) -> ProviderEntry:
        place = self.find(name)
        if place is None:
            raise UsageError(self._unknown(name))
        if not place.own.enabled:
            fix = f"`hermes config set providers.{name}.enabled true`"
            raise ConfigError(f"The provider {name} is switched off; {fix}.")
        return place

    def names(self) -> tuple[str, ...]:
        """All that may be chosen, the user's own first."""
        own = (name for name, held in self._declared.items() if held.enabled)
        off = {name for name, held in self._declared.items() if not held.enabled}
        shipped = (name for name in self._catalogue.vendors if name not in off)
        return tuple(dict.fromkeys((*own, *shipped, *IN_PROCESS)))

    def _unknown(self, name: str) -> str:
        # Only a slip needs the comparison of words.
        import difflib

        aliases = (alias for v in self._catalogue.vendors.values() for alias in v.aliases)
        known = (*self.names(), *aliases)
        near = difflib.get_close_matches(name.lower(), known, n=_NEAR, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`hermes model list` shows them."
        return f"There is no provider {name!r}; {hint}"


NEAR = 3


def near_names(model: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that come nearest; what stands before a slash counts less."""
    # Only a slip needs the comparison of words.
    import difflib

    tails = {name.rpartition("/")[2].lower(): name for name in names}
    wanted = model.rpartition("/")[2].lower()
    near = difflib.get_close_matches(wanted, tails, n=NEAR, cutoff=0.4)
    holding = [tail for tail in tails if wanted and wanted in tail]
    return tuple(tails[tail] for tail in dict.fromkeys((*holding[:NEAR], *near)))[:NEAR]


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
