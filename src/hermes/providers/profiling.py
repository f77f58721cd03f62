"""Builds a model's profile from what is known about vendor, family and server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.providers.addresses import host_of, is_local
from hermes.providers.family import UNKNOWN_WINDOW, Family
from hermes.providers.listing import ModelInfo
from hermes.providers.prices import FREE, ModelPrice, PriceSource
from hermes.providers.profile import EffortStyle, MarkStyle, ModelProfile, Replay, WireName

if TYPE_CHECKING:
    from hermes.providers.vendor import ServerKind, Vendor, VendorRoute

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
    """Everything except the price. What the server reports (`info`) beats the family."""
    images = family.images if info.vision is None else info.vision
    return ModelProfile(
        window=info.window or family.window or UNKNOWN_WINDOW,
        max_output=info.output or family.output,
        usual_output=vendor.usual_output,
        output_field=family.output_field or vendor.output_field,
        effort=_effort(vendor, wire, family, server),
        efforts=_LEVELS if family.efforts is None else family.efforts,
        marks=_marks(vendor, wire, family),
        replay=_replay(vendor, wire, family),
        developer=bool(family.developer),
        images=images is not False,
        image_results=vendor.image_results,
        tools=family.tools if info.tools is None else info.tools,
        tool_calls=(family.tool_calls or "auto") if vendor.text_calls else "",
        schemas=family.schemas or vendor.schemas,
        says_name=vendor.says_name,
        conversation_field=vendor.conversation_field,
        conversation_header=vendor.conversation_header,
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
    """The price, its source, and whether calls are included in a subscription or run locally."""
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


def _marks(vendor: Vendor, wire: WireName, family: Family) -> MarkStyle:
    if not family.caches or wire == "responses":
        return "off"
    return "native" if wire == "messages" else vendor.marks


def _replay(vendor: Vendor, wire: WireName, family: Family) -> Replay:
    if wire != "chat":
        return "sealed"
    return vendor.replay if vendor.replay != "none" else family.replay or "none"
