"""Vendors and model families as data: who speaks which format, and what a model can do."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.providers.endpoint import Auth, Endpoint, host_of
from hermes.providers.profile import (
    EffortStyle,
    MarkStyle,
    ModelProfile,
    OutputField,
    Replay,
    WireName,
)

API_MODES: dict[str, WireName] = {
    "chat_completions": "chat",
    "codex_responses": "responses",
    "anthropic_messages": "messages",
}
_OWN_RESPONSES = ("api.openai.com", "chatgpt.com", "api.x.ai")


class Vendor(Value):
    """Who offers models at an address. `keys` are names of environment variables, best first."""

    name: str
    wire: WireName
    label: str = ""
    default_model: str = ""
    aliases: tuple[str, ...] = ()
    url: str = ""
    url_env: str = ""
    by_url: bool = False
    bare: bool = False
    keys: tuple[str, ...] = ()
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    effort: EffortStyle = "none"
    marks: MarkStyle = "off"
    replay: Replay = "none"


class Host(Value):
    host: str
    wire: WireName
    path: str = ""


class Family(Value):
    """What models with one of these names have in common; see vendors.toml."""

    match: tuple[str, ...] = ()
    window: int = 256_000
    output: int | None = None
    reasons: bool = False
    thinking: Literal["none", "adaptive", "budget"] = "none"
    efforts: tuple[str, ...] = ("low", "medium", "high")
    envelope: bool = True
    caches: bool = False
    output_field: OutputField = "max_tokens"
    developer: bool = False
    replay: Replay = "none"


class Catalogue(Value):
    """All that is known of vendors and families."""

    vendors: dict[str, Vendor]
    hosts: tuple[Host, ...] = ()
    families: tuple[Family, ...] = ()

    def vendor(self, name: str) -> Vendor | None:
        """By name or alias."""
        if name in self.vendors:
            return self.vendors[name]
        return next((v for v in self.vendors.values() if name in v.aliases), None)

    def family(self, model: str) -> Family:
        name = model.lower().replace(".", "-")
        matches = ((word, f) for f in self.families for word in f.match if word in name)
        best = max(matches, key=lambda match: len(match[0]), default=("", Family()))
        return best[1]

    def profile(self, vendor: Vendor, wire: WireName, model: str) -> ModelProfile:
        family = self.family(model)
        return ModelProfile(
            window=family.window,
            max_output=family.output,
            output_field=family.output_field,
            effort=_effort(vendor, wire, family),
            efforts=family.efforts,
            marks=_marks(vendor, wire, family),
            replay=_replay(vendor, wire, family),
            developer=family.developer,
        )

    def wire(
        self, url: str, *, vendor: Vendor | None = None, api_mode: str = "", saved: bool = False
    ) -> WireName:
        """The format for an address. `saved` tells that the mode was kept from an earlier choice
        of address, and so is not believed for one that cannot speak it."""
        mode = API_MODES.get(api_mode)
        foreign = saved and mode == "responses" and host_of(url) not in _OWN_RESPONSES
        if mode is not None and not foreign:
            return mode
        if vendor is not None and not vendor.by_url:
            return vendor.wire
        return self._wire_of(url)

    def endpoint(
        self,
        vendor: Vendor,
        model: str,
        *,
        key: str = "",
        url: str = "",
        api_mode: str = "",
        saved: bool = False,
        name: str = "",
        headers: dict[str, str] | None = None,
        overrides: JsonObject | None = None,
    ) -> Endpoint:
        """Where to ask this model. `overrides` are fields of ModelProfile that the user set."""
        address = url or vendor.url
        if not address:
            raise ConfigError(f"The provider {vendor.name} needs a base URL; set model.base_url.")
        wire = self.wire(address, vendor=vendor, api_mode=api_mode, saved=saved)
        model = model.rpartition("/")[2].replace(".", "-") if vendor.bare else model
        profile = _overridden(self.profile(vendor, wire, model), overrides or {})
        return Endpoint(
            name=name or vendor.name,
            wire=wire,
            url=address,
            model=model,
            key=key,
            auth=vendor.auth,
            headers={**vendor.headers, **(headers or {})},
            profile=profile,
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
    return read_catalogue(Path(__file__).with_name("vendors.toml").read_text("utf-8"))


def read_catalogue(text: str, *, over: Catalogue | None = None) -> Catalogue:
    """The vendors, hosts and families in TOML, laid over those of another catalogue."""
    try:
        raw = tomllib.loads(text)
        named = {name: {"name": name, **given} for name, given in raw.get("vendors", {}).items()}
        found = convert(Catalogue, {**raw, "vendors": named})
    except (tomllib.TOMLDecodeError, DecodeError, TypeError) as error:
        raise ConfigError(f"The list of vendors cannot be used: {error}.") from error
    if over is None:
        return found
    return Catalogue(
        vendors={**over.vendors, **found.vendors},
        hosts=(*found.hosts, *over.hosts),
        families=(*found.families, *over.families),
    )


def _effort(vendor: Vendor, wire: WireName, family: Family) -> EffortStyle:
    if not family.reasons:
        return "none"
    if wire == "messages":
        return family.thinking
    if wire == "responses":
        return "responses"
    return "none" if vendor.effort == "envelope" and not family.envelope else vendor.effort


def _marks(vendor: Vendor, wire: WireName, family: Family) -> MarkStyle:
    if not family.caches or wire == "responses":
        return "off"
    return "native" if wire == "messages" else vendor.marks


def _replay(vendor: Vendor, wire: WireName, family: Family) -> Replay:
    if wire != "chat":
        return "sealed"
    return vendor.replay if vendor.replay != "none" else family.replay


def _overridden(profile: ModelProfile, overrides: JsonObject) -> ModelProfile:
    try:
        return convert(ModelProfile, {**msgspec.structs.asdict(profile), **overrides})
    except DecodeError as error:
        raise ConfigError(f"A setting of the model cannot be used: {error}.") from error
