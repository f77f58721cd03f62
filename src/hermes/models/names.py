"""Resolves names of providers and models: aliases, prefixes, families and similar names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hermes.codec.values import Value, replace
from hermes.config.provider_settings import ProviderSettings
from hermes.core.errors import ConfigError, UsageError
from hermes.models.model_ref import CUSTOM, IN_PROCESS
from hermes.providers.local_discovery import HOST, LOCAL_PORTS
from hermes.providers.model_catalogue import ModelCatalogue, Vendor
from hermes.providers.model_names import MAKERS, newest_match, spell_for_vendor, split_model_ref

NEAR = 3
_PREFIX = f"{CUSTOM}:"
_SERVERS = {port.label.lower().replace(".", "").replace(" ", ""): port for port in LOCAL_PORTS}


class ProviderEntry(Value):
    """A provider by name, as recorded and shown. `server` is the kind of local server, if the name
    denotes one."""

    name: str
    vendor: Vendor
    own: ProviderSettings = ProviderSettings()
    server: str = ""

    @property
    def label(self) -> str:
        return self.own.name or (self.vendor.label if self.name == self.vendor.name else self.name)

    @property
    def default_url(self) -> str:
        """The default URL of this kind of local server."""
        server = _SERVERS.get(self.server)
        return f"http://{HOST}:{server.port}/v1" if server is not None else ""

    @property
    def default_model(self) -> str:
        return self.own.default_model or self.vendor.default_model


class ProviderNames:
    """Canonical names take precedence over names from the settings, and those over aliases."""

    def __init__(self, catalogue: ModelCatalogue, declared: dict[str, ProviderSettings]) -> None:
        self._catalogue = catalogue
        self._declared = declared

    def find(self, name: str) -> ProviderEntry | None:
        """Find a provider; None when there is no such provider."""
        vendors, low = self._catalogue.vendors, name.strip().lower()
        bare = name.strip()[len(_PREFIX) :] if low.startswith(_PREFIX) else name.strip()
        if low in vendors:
            return self._entry(low, vendors[low], low)
        if bare in self._declared:
            return self._entry(bare, vendors[CUSTOM], bare)
        vendor = self._catalogue.vendor(low)
        if vendor is None:
            return None
        return self._entry(low if low in self._catalogue.servers else vendor.name, vendor, low)

    def _entry(self, name: str, vendor: Vendor, alias: str) -> ProviderEntry:
        server = alias.lower() if alias.lower() in self._catalogue.servers else ""
        own = self._declared.get(name, ProviderSettings())
        return ProviderEntry(name=name, vendor=vendor, own=own, server=server)

    def get(self, name: str) -> ProviderEntry:
        entry = self.find(name)
        if entry is None:
            # Loaded only for a name that is not found.
            import difflib

            aliases = (alias for v in self._catalogue.vendors.values() for alias in v.aliases)
            known = (*self.names(), *aliases)
            near = difflib.get_close_matches(name.lower(), known, n=NEAR, cutoff=0.5)
            hint = "`hermes model list` lists them."
            hint = f"did you mean {' or '.join(near)}?" if near else hint
            raise UsageError(f"There is no provider {name!r}; {hint}")
        if not entry.own.enabled:
            fix = f"`hermes config set providers.{name}.enabled true`"
            raise ConfigError(f"The provider {name} is disabled; {fix}.")
        return entry

    def names(self) -> tuple[str, ...]:
        """Return all providers that can be chosen, those from the settings first."""
        enabled = (name for name, own in self._declared.items() if own.enabled)
        disabled = {name for name, own in self._declared.items() if not own.enabled}
        shipped = (name for name in self._catalogue.vendors if name not in disabled)
        return tuple(dict.fromkeys((*enabled, *shipped, *IN_PROCESS)))


def near_names(model: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the most similar names; the part before a slash is ignored."""
    # Loaded only for a name that is not found.
    import difflib

    tails = {name.rpartition("/")[2].lower(): name for name in names}
    wanted = model.rpartition("/")[2].lower()
    near = difflib.get_close_matches(wanted, tails, n=NEAR, cutoff=0.4)
    containing = [tail for tail in tails if wanted and wanted in tail]
    return tuple(tails[tail] for tail in dict.fromkeys((*containing[:NEAR], *near)))[:NEAR]


def unlisted_message(entry: ProviderEntry, model: str, near: tuple[str, ...]) -> str:
    """Return the error for a model that a provider does not list, with similar names."""
    hint = f"similar: {', '.join(near)}" if near else f"see `hermes model list {entry.name}`"
    return f"{entry.label} does not list {model!r}; {hint}."


class ParsedName(Value):
    """A model name that the user entered, split into its parts."""

    model: str
    provider: str = ""  # empty if the text names none
    text: str = ""  # the whole text with aliases resolved


class ModelNames:
    """Resolves model names. `known_models` lists the models that a provider is known to have."""

    def __init__(
        self,
        catalogue: ModelCatalogue,
        providers: ProviderNames,
        aliases: Mapping[str, str],
        known_models: Callable[[ProviderEntry], Iterable[str]],
    ) -> None:
        self._catalogue = catalogue
        self._providers = providers
        self._aliases = {alias.lower(): target for alias, target in aliases.items()}
        self._known_models = known_models

    def read(self, text: str) -> ParsedName:
        """Parse `provider:model`, after resolving the user's aliases."""
        text = text.strip()
        resolved = self._aliases.get(text.lower(), text)
        return replace(self._parse_prefix(resolved), text=resolved)

    def canonical_name(self, model: str, entry: ProviderEntry) -> str:
        """Return the name as this provider spells it; for a family, its newest model."""
        if not model or entry.name in IN_PROCESS:
            return model
        name = spell_for_vendor(entry.vendor, model)
        if model.lower() not in self._catalogue.shorthands:
            return name
        known = tuple(self._known_models(entry))
        if name in known:
            return name
        return newest_match(self._catalogue, model, known) or name

    def suits(self, vendor: Vendor, model: str) -> bool:
        """Return whether this vendor probably serves the model."""
        if not model or vendor.names in ("slug", "as_is"):
            return True
        head, slash, _ = model.lower().partition("/")
        own = (vendor.name, *vendor.aliases, *vendor.slugs)
        if slash:
            return head in own
        maker = next((name for start, name in MAKERS.items() if head.startswith(start)), "")
        return bool(maker) and maker in own

    def owner(self, model: str) -> Vendor | None:
        """Return the vendor named before the slash in `vendor/model`."""
        head, slash, rest = model.lower().partition("/")
        if not slash or not rest:
            return None
        found = self._catalogue.vendor(head)
        slugs = (v for v in self._catalogue.vendors.values() if head in v.slugs)
        return found or next(slugs, None)

    def _parse_prefix(self, text: str) -> ParsedName:
        head, colon, rest = text.partition(":")
        if colon and head.lower() in IN_PROCESS:
            return ParsedName(model=rest, provider=head.lower())
        if colon and head.lower() == "custom":
            name, second, model = rest.partition(":")
            if second and self._providers.find(f"custom:{name}") is not None:
                return ParsedName(model=model, provider=name)
        entry = self._providers.find(head) if colon and rest else None
        if entry is not None and entry.name not in self._catalogue.vendors and not entry.server:
            # `name:rest` with a provider from the settings is not a tag of a local model.
            return ParsedName(model=rest, provider=entry.name)
        vendor, model = split_model_ref(self._catalogue, text)
        return ParsedName(model=model, provider=entry.name if vendor is not None and entry else "")
