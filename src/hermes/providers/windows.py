"""Determines the context window of a model from the best source."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.providers.addresses import host_of, is_local
from hermes.providers.family import UNKNOWN_WINDOW, merge_families
from hermes.providers.learned import LearnedWindows
from hermes.providers.listing import ModelInfo
from hermes.providers.listings import ModelListing
from hermes.providers.vendor import ModelCatalogue, Vendor

UNKNOWN_LOCAL_WINDOW = 32_768
"""Local servers truncate prompts silently, so the default for them is cautious."""

Source = Literal["user", "learned", "server", "listing", "registry", "family", "guess"]


class ContextWindow(Value):
    tokens: int
    source: Source


def context_window(
    catalogue: ModelCatalogue,
    vendor: Vendor,
    model: str,
    url: str,
    *,
    configured: int | None = None,
    learned: LearnedWindows | None = None,
    info: ModelInfo | None = None,
    listing: ModelListing | None = None,
    registry: ModelListing | None = None,
) -> ContextWindow:
    """The first of: user setting, error message, what the server reports (`info`), the endpoint's
    listing, another listing (`registry`), the family, a default. A guess after an error ranks below
    what the provider reports."""
    if configured:
        return ContextWindow(tokens=configured, source="user")
    lesson = learned.window(model, url) if learned is not None else None
    if lesson is not None and not lesson.guess:
        return ContextWindow(tokens=lesson.tokens, source="learned")
    listed = listing.find(model) if listing is not None else None
    for source, entry in (("server", info), ("listing", listed)):
        if entry is not None and entry.window:
            return ContextWindow(
                tokens=entry.window, source="server" if source == "server" else "listing"
            )
    found = _from_registry(catalogue, vendor, model, url, registry)
    if lesson is not None and lesson.tokens < found.tokens:
        return ContextWindow(tokens=lesson.tokens, source="learned")
    return found


def _from_registry(
    catalogue: ModelCatalogue, vendor: Vendor, model: str, url: str, registry: ModelListing | None
) -> ContextWindow:
    local = is_local(host_of(url))
    entry = registry.find(model) if registry is not None and not local else None
    if entry is not None and entry.window:
        return ContextWindow(tokens=entry.window, source="registry")
    family = merge_families(catalogue.families, model, vendor.name)
    if family.window:
        return ContextWindow(tokens=family.window, source="family")
    return ContextWindow(tokens=UNKNOWN_LOCAL_WINDOW if local else UNKNOWN_WINDOW, source="guess")
