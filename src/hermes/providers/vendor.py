"""Vendors and model families as data: who speaks which format, and what a model can do."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from hermes.codec.json import DecodeError, convert, decode, plain
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ConfigError
from hermes.providers.endpoint import Auth, Endpoint, host_of
from hermes.providers.family import UNKNOWN_WINDOW, Family, merged
from hermes.providers.listing import ModelInfo
from hermes.providers.naming import NameStyle, Shorthand, normalise
from hermes.providers.options import Options, Wish, option_headers, with_options
from hermes.providers.overriding import overridden
from hermes.providers.prices import FREE, Price, Sheet
from hermes.providers.profile import (
    EffortStyle,
    MarkStyle,
    ModelProfile,
    OutputField,
    Replay,
    SchemaStyle,
    WireName,
)
from hermes.providers.profiling import build_profile, cost_of
from hermes.providers.scope import UrlSource, may_send

API_MODES: dict[str, WireName] = {
    "chat_completions": "chat",
    "codex_responses": "responses",
    "anthropic_messages": "messages",
}
Login = Literal["api_key", "oauth_device_code", "oauth_pkce", "oauth_external", "copilot", "none"]
PACKED = Path(__file__).with_name("catalogue.json")
_OWN_RESPONSES = ("api.openai.com", "chatgpt.com", "api.x.ai")
_NO_OPTIONS = Options()
_DATE = r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest)$"


class WireRule(Value):
    """Models with one of these words in their names, and none of `but`, speak this format."""

    match: tuple[str, ...]
    wire: WireName
    but: tuple[str, ...] = ()


class Route(Value):
    """Another address of a vendor: for keys that begin with `prefix`, or when it is configured.
    What it does not say is as at the vendor's own address."""

    url: str = ""
    prefix: str = ""
    wire: WireName | None = None
    auth: Auth | None = None
    headers: dict[str, str] = {}
    included: bool = False


class Vendor(Value):
    """Who offers models at an address; the fields are explained in vendors.toml."""

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
    models_url: str = ""
    routes: tuple[Route, ...] = ()
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
    takes: tuple[Wish, ...] = ()
    omit: tuple[str, ...] = ()
    extra: JsonObject = {}
    says_name: bool = False
    conversation_field: str = ""
    conversation_header: str = ""
    initiator: str = ""
    resells: bool = False
    included: bool = False

    def own_hosts(self) -> frozenset[str]:
        """The hosts that its keys belong to."""
        urls = (self.url, *(route.url for route in self.routes))
        return frozenset((*(host_of(url) for url in urls if url), *self.hosts))


class Host(Value):
    host: str
    wire: WireName
    path: str = ""


class Server(Value):
    """A kind of model server that people run themselves."""

    label: str
    effort: EffortStyle = "none"
    takes: tuple[Wish, ...] = ()


class Catalogue(Value):
    """All that is known of vendors and models. Vendors are in the order in which their keys are
    looked for when nobody chose one."""

    vendors: dict[str, Vendor]
    hosts: tuple[Host, ...] = ()
    families: tuple[Family, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    servers: dict[str, Server] = {}
    shorthands: dict[str, Shorthand] = {}

    def vendor(self, name: str) -> Vendor | None:
        """By name or alias."""
        if name in self.vendors:
            return self.vendors[name]
        return next((v for v in self.vendors.values() if name in v.aliases), None)

    def owner(self, url: str) -> Vendor | None:
        """Whose host this is."""
        host = host_of(url)
        return next((v for v in self.vendors.values() if host in v.own_hosts()), None)

    def family(self, model: str, vendor: Vendor | None = None) -> Family:
        found = merged(self.families, model, vendor.name if vendor else "")
        return found if found.window else replace(found, window=UNKNOWN_WINDOW)

    def price(self, vendor: Vendor, model: str) -> Price | None:
        """What the vendor has published; None when that is not known here."""
        maker, _, name = model.lower().rpartition("/")
        name, _, variant = name.partition(":")
        if variant and vendor.resells:
            return FREE if variant == "free" else None
        name = re.sub(_DATE, "", _spelled(name))
        for sheet in self.sheets:
            sold = vendor.name in sheet.vendors or (vendor.resells and maker in sheet.slugs)
            fitting = (price for known, price in sheet.models.items() if _spelled(known) == name)
            if sold and (found := next(fitting, None)) is not None:
                return replace(found, version=found.version or sheet.version)
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
        """The format for an address and model. `saved` tells that the mode was kept from an
        earlier choice of address, and so is not believed for one that cannot speak it."""
        mode = API_MODES.get(api_mode)
        foreign = saved and mode == "responses" and host_of(url) not in _OWN_RESPONSES
        if mode is not None and not foreign:
            return mode
        if vendor is None:
            return self._wire_of(url)
        route = _route(vendor, url, key)
        if route is not None and route.wire is not None:
            return route.wire
        rules = (rule.wire for rule in vendor.wires if _speaks(rule, model.lower()))
        return next(rules, None) or (self._wire_of(url) if vendor.by_url else vendor.wire)

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
        """What is known of the model at an address; `info` is what its server said about it."""
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
        options: Options = _NO_OPTIONS,
        info: ModelInfo | None = None,
        window: int | None = None,
        server: str = "",
    ) -> Endpoint:
        """Where to ask this model. A key that came from elsewhere than the address (`key_source`)
        is left out when it may not be sent there; see scope.py. `overrides` are fields of
        ModelProfile, or settings of a model, that the user set; `info` and `window` what is known
        beyond the catalogue; `server` is a kind of server in it."""
        route = _route(vendor, url, key)
        address = _address(vendor, url or (route.url if route else ""))
        if not address:
            raise ConfigError(f"The provider {vendor.name} needs a base URL; set model.base_url.")
        source: UrlSource = url_source if url else ""
        if not may_send(self, vendor, address, key_source=key_source, url_source=source):
            key = ""
        model = normalise(vendor, model)
        wire = self.wire(
            address, vendor=vendor, model=model, key=key, api_mode=api_mode, saved=saved
        )
        profile = self.profile(vendor, wire, model, url=address, key=key, server=server, info=info)
        takes = (*vendor.takes, *(self.servers[server].takes if server in self.servers else ()))
        # Thinking in the messages format fixes the temperature too.
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
            profile=overridden(profile, overrides or {}),
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
def shipped() -> Catalogue:
    """The catalogue of this package."""
    return decode(Catalogue, PACKED.read_bytes())


def layered(path: Path, *, over: Catalogue | None = None) -> Catalogue:
    """The shipped catalogue under the vendors, families and prices of a file; a missing file adds
    nothing, one that cannot be used is a ConfigError."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return over or shipped()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    return read_catalogue(text, over=over or shipped())


def read_catalogue(text: str, *, over: Catalogue | None = None) -> Catalogue:
    """What a TOML text says, laid over another catalogue. Of a vendor that is known already, the
    text needs to name only what is different."""
    # Reading TOML takes longer than all the rest, and few homes have such a file.
    import tomllib

    known = over or Catalogue(vendors={})
    try:
        raw = tomllib.loads(text)
        vendors = {
            name: {**_said(known.vendors.get(name)), **given, "name": name}
            for name, given in raw.get("vendors", {}).items()
        }
        found = convert(Catalogue, {**raw, "vendors": vendors})
    except (tomllib.TOMLDecodeError, DecodeError, TypeError, AttributeError) as error:
        raise ConfigError(f"The list of vendors cannot be used: {error}.") from error
    return Catalogue(
        vendors={**known.vendors, **found.vendors},
        hosts=(*found.hosts, *known.hosts),
        families=(*found.families, *known.families),
        sheets=(*found.sheets, *known.sheets),
        servers={**known.servers, **found.servers},
        shorthands={**known.shorthands, **found.shorthands},
    )


def _said(vendor: Vendor | None) -> JsonObject:
    return plain(vendor) if vendor is not None else {}


def _spelled(name: str) -> str:
    """Some write 4.6 where others write 4-6."""
    return name.lower().replace(".", "-")


def _speaks(rule: WireRule, model: str) -> bool:
    fits = any(word in model for word in rule.match)
    return fits and not any(word in model for word in rule.but)


def _route(vendor: Vendor, url: str, key: str) -> Route | None:
    for route in vendor.routes:
        by_key = route.prefix and key.startswith(route.prefix)
        if by_key and not (url and route.url):
            return route
        if url and route.url and (url.rstrip("/") + "/").startswith(route.url.rstrip("/") + "/"):
            return route
    return None


def _address(vendor: Vendor, url: str) -> str:
    address = url or vendor.url
    if not vendor.suffix or not address or address.rstrip("/").endswith(vendor.suffix):
        return address
    return address.rstrip("/") + vendor.suffix
