"""How large the window of a model is, from the best source there is."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import Value
from hermes.providers.endpoint import host_of, is_local
from hermes.providers.family import UNKNOWN_WINDOW, merged
from hermes.providers.learned import LearnedLimits
from hermes.providers.listing import ModelInfo
from hermes.providers.listings import Listing
from hermes.providers.vendor import Catalogue, Vendor

UNKNOWN_LOCAL_WINDOW = 32_768
"""Servers of one's own cut prompts silently, so the guess for them is a careful one."""

Source = Literal["user", "learned", "server", "listing", "registry", "family", "guess"]


class Window(Value):
    tokens: int
    source: Source


def known(
    catalogue: Catalogue,
    vendor: Vendor,
    model: str,
    url: str,
    *,
    configured: int | None = None,
    learned: LearnedLimits | None = None,
    info: ModelInfo | None = None,
    listing: Listing | None = None,
    registry: Listing | None = None,
) -> Window:
    """The first of: what the user set, what an error named, what the server says about the model
    (`info`), the endpoint's own list, a list of someone else (`registry`), the family, a guess.
    What was only guessed after an error counts less than what the provider itself says."""
    if configured:
        return Window(tokens=configured, source="user")
    lesson = learned.window(model, url) if learned is not None else None
    if lesson is not None and not lesson.guess:
        return Window(tokens=lesson.tokens, source="learned")
    listed = listing.find(model) if listing is not None else None
    for source, entry in (("server", info), ("listing", listed)):
        if entry is not None and entry.window:
            return Window(tokens=entry.window, source="server" if source == "server" else "listing")
    found = _elsewhere(catalogue, vendor, model, url, registry)
    if lesson is not None and lesson.tokens < found.tokens:
        return Window(tokens=lesson.tokens, source="learned")
    return found


def _elsewhere(
    catalogue: Catalogue, vendor: Vendor, model: str, url: str, registry: Listing | None
) -> Window:
    local = is_local(host_of(url))
    entry = registry.find(model) if registry is not None and not local else None
    if entry is not None and entry.window:
        return Window(tokens=entry.window, source="registry")
    family = merged(catalogue.families, model, vendor.name)
    if family.window:
        return Window(tokens=family.window, source="family")
    return Window(tokens=UNKNOWN_LOCAL_WINDOW if local else UNKNOWN_WINDOW, source="guess")
