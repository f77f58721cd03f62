"""What the name of a provider means: a vendor, an endpoint of the user's own, or a slip."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.config.provider_settings import ProviderSettings
from hermes.core.errors import ConfigError, UsageError
from hermes.models.choice import CUSTOM, IN_PROCESS
from hermes.providers.catalogue import ModelCatalogue, Vendor
from hermes.providers.local_discovery import HOST, LOCAL_PORTS

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
