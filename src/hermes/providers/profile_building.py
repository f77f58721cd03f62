"""Builds a model's profile from vendor, family, server, user options and overrides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from hermes.codec.json import DecodeError, convert, plain
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ConfigError
from hermes.net.addresses import host_of, is_local
from hermes.providers.model_listing import ModelInfo
from hermes.providers.profile import (
    FREE,
    UNKNOWN_WINDOW,
    EffortStyle,
    Family,
    MarkStyle,
    ModelPrice,
    ModelProfile,
    PriceSource,
    Replay,
    WireName,
)

if TYPE_CHECKING:
    from hermes.providers.model_catalogue import ServerKind, Vendor, VendorRoute

_LEVELS = ("low", "medium", "high")
_ENVELOPES = ("envelope", "envelope_on")


def build_profile(
    vendor: Vendor,
    wire: WireName,
    family: Family,
    info: ModelInfo,
    *,
    server: ServerKind | None,
) -> ModelProfile:
    """Build everything except the price. What the server reports (`info`) beats the family."""
    images = family.images if info.vision is None else info.vision
    marks: MarkStyle = "native" if wire == "messages" else vendor.marks
    if not family.caches or wire == "responses":
        marks = "off"
    replay: Replay = "sealed"
    if wire == "chat":
        replay = vendor.replay if vendor.replay != "none" else family.replay or "none"
    return ModelProfile(
        window=info.window or family.window or UNKNOWN_WINDOW,
        max_output=info.output or family.output,
        usual_output=vendor.usual_output,
        output_field=family.output_field or vendor.output_field,
        effort=_effort(vendor, wire, family, server),
        efforts=_LEVELS if family.efforts is None else family.efforts,
        marks=marks,
        replay=replay,
        developer=bool(family.developer),
        images=images is not False,
        image_results=vendor.image_results,
        tools=family.tools if info.tools is None else info.tools,
        tool_calls=(family.tool_calls or "auto") if vendor.text_calls else "",
        schemas=family.schemas or vendor.schemas,
        says_name=vendor.says_name,
        conversation_field=vendor.conversation_field,
        conversation_header=vendor.conversation_header,
        predict=vendor.predict,
        initiator=vendor.initiator,
        omit=vendor.omit,
        extra=vendor.extra,
    )


def cost_of(
    vendor: Vendor,
    url: str,
    route: VendorRoute | None,
    info: ModelInfo,
    published: ModelPrice | None,
) -> tuple[ModelPrice | None, PriceSource, bool]:
    """Return the price, its source, and whether calls are included in a subscription or run
    locally."""
    if vendor.included or (route is not None and route.included) or is_local(host_of(url)):
        return FREE, "none", True
    if info.price is not None:
        return info.price, "provider_models_api", False
    if published is not None:
        return published, "official_docs_snapshot", False
    return None, "none", False


def _effort(
    vendor: Vendor, wire: WireName, family: Family, server: ServerKind | None
) -> EffortStyle:
    if not family.reasons:
        return "none"
    if wire == "messages":
        return family.thinking or "none"
    if wire == "responses":
        return "responses"
    style = family.effort or (server.effort if server is not None else vendor.effort)
    return "none" if style in _ENVELOPES and family.envelope is False else style


OptionName = Literal["routing", "response_cache", "service_tier", "num_ctx"]


# Price factor of a service tier; never below what is charged.
TIERS = {"priority": 2.0}


class RequestOptions(Value):
    """Options of a request. Those that an endpoint does not support are dropped silently."""

    routing: JsonObject = {}  # the fields of `provider_routing`
    response_cache_seconds: int | None = None
    service_tier: str = ""
    temperature: float | None = None
    num_ctx: int | None = None
    session: str = ""  # the conversation id for endpoints that key their caches by it
    body: JsonObject = {}  # additional fields that are always sent


def option_headers(takes: Iterable[OptionName], options: RequestOptions) -> dict[str, str]:
    seconds = options.response_cache_seconds
    if seconds is None or "response_cache" not in takes:
        return {}
    return {"X-OpenRouter-Cache": "true", "X-OpenRouter-Cache-TTL": str(seconds)}


def with_options(
    profile: ModelProfile,
    takes: Iterable[OptionName],
    options: RequestOptions,
    *,
    temperature: bool,
) -> ModelProfile:
    """Return the profile with the option fields. `temperature` is true if the model accepts one."""
    extra = dict(profile.extra)
    routing = {name: value for name, value in options.routing.items() if value}
    if "routing" in takes and routing:
        extra["provider"] = {n: list(v) if isinstance(v, tuple) else v for n, v in routing.items()}
    price = profile.price
    if "service_tier" in takes and options.service_tier:
        extra["service_tier"] = options.service_tier
        price = price and price.scaled_by(TIERS.get(options.service_tier, 1.0))
    if "num_ctx" in takes and options.num_ctx:
        extra["options"] = {"num_ctx": options.num_ctx}
    if temperature and options.temperature is not None:
        extra["temperature"] = options.temperature
    extra |= options.body
    return replace(profile, extra=extra, price=price, conversation=options.session)


# Settings under `providers.<name>.models`, mapped to profile fields.
_SETTINGS = {
    "context_length": "window",
    "max_output_tokens": "max_output",
    "vision": "images",
    "tool_calls": "tool_calls",
}
_PRICES = {
    "price_input": "input",
    "price_output": "output",
    "price_cache_read": "cache_read",
    "price_cache_write": "cache_write",
}
# Settings of a model that do not concern the profile.
_IGNORED = ("timeout_seconds",)


def apply_overrides(profile: ModelProfile, overrides: JsonObject) -> ModelProfile:
    """Apply profile fields as they are, and settings of a model, where null and "" mean unset."""
    if not overrides:
        return profile
    changed = {**msgspec.structs.asdict(profile), **_fields(profile, overrides)}
    try:
        return convert(ModelProfile, changed)
    except DecodeError as error:
        raise ConfigError(f"A model setting is invalid ({error}); correct it.") from error


def _fields(profile: ModelProfile, overrides: JsonObject) -> JsonObject:
    fields: JsonObject = {}
    rates: JsonObject = {}
    for name, value in overrides.items():
        if name in ModelProfile.__struct_fields__ and name not in _SETTINGS:
            fields[name] = value
        elif name not in _IGNORED and value not in (None, ""):
            into = rates if name in _PRICES else fields
            into[_PRICES.get(name) or _SETTINGS.get(name, name)] = value
    if "extra" in fields and isinstance(fields["extra"], dict):
        fields["extra"] = {**profile.extra, **fields["extra"]}
    if rates:
        # The user's rates over the known ones, as a flat price for any prompt length.
        known = plain(profile.price) if profile.price is not None else {}
        kept = {name: known[name] for name in _PRICES.values() if name in known}
        price = {"output": 0.0, "input": 0.0, **kept, **rates}
        fields |= {"price": price, "price_source": "user_override", "included": False}
    return fields
