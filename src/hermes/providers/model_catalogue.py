"""The catalogue of vendors and model families: wire formats, addresses, abilities."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from hermes.codec.json import DecodeError, convert, decode, plain
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ConfigError
from hermes.net.addresses import host_of
from hermes.providers.endpoint import API_MODE_NAMES, Auth, Endpoint, UrlSource, may_send
from hermes.providers.model_listing import ModelInfo
from hermes.providers.model_names import NameStyle, Shorthand, spell_for_vendor
from hermes.providers.profile import (
    FREE,
    UNKNOWN_WINDOW,
    EffortStyle,
    Family,
    MarkStyle,
    ModelPrice,
    ModelProfile,
    OutputField,
    PriceSheet,
    Replay,
    SchemaStyle,
    WireName,
    merge_families,
)
from hermes.providers.profile_building import (
    OptionName,
    RequestOptions,
    apply_overrides,
    build_profile,
    cost_of,
    option_headers,
    with_options,
)

API_MODES: dict[str, WireName] = {mode: wire for wire, mode in API_MODE_NAMES.items()}
Login = Literal[
    "api_key", "oauth_device_code", "oauth_pkce", "oauth_external", "copilot", "vertex", "none"
]
PACKED = Path(__file__).with_name("model_catalogue.json")
_OWN_RESPONSES = ("api.openai.com", "chatgpt.com", "api.x.ai")
_NO_OPTIONS = RequestOptions()
_DATE = r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest)$"


class WireRule(Value):
    """A rule that models with one of these words in their name, and none of `but`, use this
    format."""

    match: tuple[str, ...]
    wire: WireName
    but: tuple[str, ...] = ()


class VendorRoute(Value):
    """Another address of a vendor, for keys that start with `prefix` or when configured. Unset
    fields default to the vendor's."""

    url: str = ""
    prefix: str = ""
    wire: WireName | None = None
    auth: Auth | None = None
    headers: dict[str, str] = {}
    included: bool = False


class Vendor(Value):
    """A company or program that offers models at an address; vendors.toml explains the fields."""

    name: str
    wire: WireName = "chat"
    label: str = ""
    signup: str = ""
    aliases: tuple[str, ...] = ()
    default_model: str = ""
    aux_model: str = ""
    url: str = ""
    url_env: str = ""
    suffix: str = ""
    paths: dict[WireName, str] = {}
    predict: bool = False
    models_url: str = ""
    routes: tuple[VendorRoute, ...] = ()
    hosts: tuple[str, ...] = ()
    by_url: bool = False
    wires: tuple[WireRule, ...] = ()
    keys: tuple[str, ...] = ()
    key_optional: bool = False
    login: Login = "api_key"
    auth: Auth = "bearer"
    auto: bool = True
    checkable: bool = True
    headers: dict[str, str] = {}
    names: NameStyle = "own"
    slugs: tuple[str, ...] = ()
    makers: dict[str, str] = {}
    suffixes: tuple[str, ...] = ()
    hyphens: bool = False
    lower: bool = False
    effort: EffortStyle = "none"
    marks: MarkStyle = "off"
    replay: Replay = "none"
    schemas: SchemaStyle = "full"
    text_calls: bool = False
    output_field: OutputField = "max_tokens"
    usual_output: int | None = None
    image_results: bool = True
    takes: tuple[OptionName, ...] = ()
    omit: tuple[str, ...] = ()
    extra: JsonObject = {}
    says_name: bool = False
    conversation_field: str = ""
    conversation_header: str = ""
    initiator: str = ""
    resells: bool = False
    included: bool = False

    def own_hosts(self) -> frozenset[str]:
        """Return the hosts to which the vendor's keys may be sent."""
        urls = (self.url, *(route.url for route in self.routes))
        return frozenset((*(host_of(url) for url in urls if url), *self.hosts))


class HostRule(Value):
    host: str
    wire: WireName
    path: str = ""


class ServerKind(Value):
    """A kind of local model server."""

    label: str
    effort: EffortStyle = "none"
    takes: tuple[OptionName, ...] = ()


class ModelCatalogue(Value):
    """Vendors and models. Vendors are ordered in the order in which automatic choice looks for
    their keys."""

    vendors: dict[str, Vendor]
    hosts: tuple[HostRule, ...] = ()
    families: tuple[Family, ...] = ()
    sheets: tuple[PriceSheet, ...] = ()
    servers: dict[str, ServerKind] = {}
    shorthands: dict[str, Shorthand] = {}

    def vendor(self, name: str) -> Vendor | None:
        """Find a vendor by name or alias."""
        if name in self.vendors:
            return self.vendors[name]
        return next((v for v in self.vendors.values() if name in v.aliases), None)

    def owner(self, url: str) -> Vendor | None:
        """Return the vendor that owns this host."""
        host = host_of(url)
        return next((v for v in self.vendors.values() if host in v.own_hosts()), None)

    def family(self, model: str, vendor: Vendor | None = None) -> Family:
        found = merge_families(self.families, model, vendor.name if vendor else "")
        return found if found.window else replace(found, window=UNKNOWN_WINDOW)

    def price(self, vendor: Vendor, model: str) -> ModelPrice | None:
        """Return the published price, or None if unknown."""
        maker, _, name = model.lower().rpartition("/")
        name, _, variant = name.partition(":")
        if variant and vendor.resells:
            return FREE if variant == "free" else None
        name = re.sub(_DATE, "", _normalise_name(name))
        for sheet in self.sheets:
            sold = vendor.name in sheet.vendors or (vendor.resells and maker in sheet.slugs)
            for known, price in sheet.models.items() if sold else ():
                if _normalise_name(known) == name:
                    return replace(price, version=price.version or sheet.version)
        return None

    def wire(
        self,
        url: str,
        *,
        vendor: Vendor | None = None,
        model: str = "",
        key: str = "",
        api_mode: str = "",
        saved: bool = False,
    ) -> WireName:
        """Return the format for an address and model. With `saved`, the mode was stored for an
        earlier address and is ignored where the new address cannot support it."""
        mode = API_MODES.get(api_mode)
        foreign = saved and mode == "responses" and host_of(url) not in _OWN_RESPONSES
        if mode is not None and not foreign:
            return mode
        if vendor is None:
            return self._wire_of(url)
        route = _route(vendor, url, key)
        if route is not None and route.wire is not None:
            return route.wire
        name = model.lower()
        for rule in vendor.wires:
            excluded = any(word in name for word in rule.but)
            if not excluded and any(word in name for word in rule.match):
                return rule.wire
        return self._wire_of(url) if vendor.by_url else vendor.wire

    def profile(
        self,
        vendor: Vendor,
        wire: WireName,
        model: str,
        *,
        url: str = "",
        key: str = "",
        server: str = "",
        info: ModelInfo | None = None,
    ) -> ModelProfile:
        """Return the profile of the model at an address; `info` is what its server reported."""
        info = info or ModelInfo(id=model)
        family = self.family(model, vendor)
        built = build_profile(vendor, wire, family, info, server=self.servers.get(server))
        route = _route(vendor, url, key)
        price, source, included = cost_of(vendor, url, route, info, self.price(vendor, model))
        return replace(built, price=price, price_source=source, included=included)

    def endpoint(
        self,
        vendor: Vendor,
        model: str,
        *,
        key: str = "",
        key_source: str = "",
        url: str = "",
        url_source: UrlSource = "config",
        api_mode: str = "",
        saved: bool = False,
        name: str = "",
        headers: dict[str, str] | None = None,
        overrides: JsonObject | None = None,
        options: RequestOptions = _NO_OPTIONS,
        info: ModelInfo | None = None,
        window: int | None = None,
        server: str = "",
    ) -> Endpoint:
        """Return the endpoint of this model. A key from another source than the address
        (`key_source`) is left out if it may not be sent there; see `may_send`. `overrides` are
        profile fields or model settings set by the user; `info` and `window` are facts beyond the
        catalogue; `server` is a kind of server in it."""
        route = _route(vendor, url, key)
        address = url or (route.url if route else "") or vendor.url
        if vendor.suffix and address and not address.rstrip("/").endswith(vendor.suffix):
            address = address.rstrip("/") + vendor.suffix
        if not address:
            raise ConfigError(f"The provider {vendor.name} needs a base URL; set model.base_url.")
        source: UrlSource = url_source if url else ""
        if not may_send(self, vendor, address, key_source=key_source, url_source=source):
            key = ""
        model = spell_for_vendor(vendor, model)
        wire = self.wire(
            address, vendor=vendor, model=model, key=key, api_mode=api_mode, saved=saved
        )
        profile = self.profile(vendor, wire, model, url=address, key=key, server=server, info=info)
        address = address.rstrip("/") + vendor.paths[wire] if wire in vendor.paths else address
        takes = (*vendor.takes, *(self.servers[server].takes if server in self.servers else ()))
        # Reasoning in the messages format fixes the temperature.
        fixed = self.family(model, vendor).temperature == "omitted"
        warm = not fixed and profile.effort not in ("adaptive", "budget")
        profile = with_options(profile, takes, options, temperature=warm)
        if window:
            profile = replace(profile, window=window)
        shipped_headers = {**vendor.headers, **(route.headers if route else {})}
        return Endpoint(
            name=name or vendor.name,
            vendor=vendor.name,
            server=server,
            wire=wire,
            url=address,
            model=model,
            key=key,
            auth=(route.auth if route else None) or vendor.auth,
            headers={**shipped_headers, **option_headers(takes, options), **(headers or {})},
            profile=apply_overrides(profile, overrides or {}),
        )

    def _wire_of(self, url: str) -> WireName:
        host, path = host_of(url), urlsplit(url).path.rstrip("/")
        for row in self.hosts:
            if row.host == host and (path + "/").startswith(row.path.rstrip("/") + "/"):
                return row.wire
        if path.endswith(("/anthropic", "/anthropic/v1")):
            return "messages"
        return "chat"


@cache
def shipped_catalogue() -> ModelCatalogue:
    """Return the catalogue of this package."""
    return decode(ModelCatalogue, PACKED.read_bytes())


def load_catalogue(path: Path) -> ModelCatalogue:
    """Return the shipped catalogue, overridden by the vendors, families and prices of a file. A
    missing file adds nothing; an invalid one raises ConfigError."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return shipped_catalogue()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; correct it.") from error
    return parse_catalogue(text, over=shipped_catalogue())


def parse_catalogue(text: str, *, over: ModelCatalogue | None = None) -> ModelCatalogue:
    """Parse TOML and layer it over another catalogue. For a known vendor, only differences need to
    be given."""
    # Imported on demand: few homes have such a file.
    import tomllib

    known = over or ModelCatalogue(vendors={})
    try:
        raw = tomllib.loads(text)
        vendors = {
            name: {**plain(known.vendors.get(name, {})), **fields, "name": name}
            for name, fields in raw.get("vendors", {}).items()
        }
        added = convert(ModelCatalogue, {**raw, "vendors": vendors})
    except (tomllib.TOMLDecodeError, DecodeError, TypeError, AttributeError) as error:
        raise ConfigError(f"The vendor list is invalid: {error}; correct it.") from error
    return ModelCatalogue(
        vendors={**known.vendors, **added.vendors},
        hosts=(*added.hosts, *known.hosts),
        families=(*added.families, *known.families),
        sheets=(*added.sheets, *known.sheets),
        servers={**known.servers, **added.servers},
        shorthands={**known.shorthands, **added.shorthands},
    )


def _normalise_name(name: str) -> str:
    """Normalise the spelling of a name: some spell 4.6 as 4-6."""
    return name.lower().replace(".", "-")


def _route(vendor: Vendor, url: str, key: str) -> VendorRoute | None:
    for route in vendor.routes:
        by_key = route.prefix and key.startswith(route.prefix)
        if by_key and not (url and route.url):
            return route
        if url and route.url and (url.rstrip("/") + "/").startswith(route.url.rstrip("/") + "/"):
            return route
    return None
