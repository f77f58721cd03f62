"""Chooses the model of a provider: the requested one, else from variables or settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from hermes.codec.values import JsonObject
from hermes.images.provider import ImageGenProvider
from hermes.images.studio import Studio

log = logging.getLogger(__name__)


def model_variable(provider: str) -> str:
    return f"{provider.upper().replace('-', '_')}_IMAGE_MODEL"


def choose_model(provider: ImageGenProvider, studio: Studio, asked: object = None) -> str:
    """A provider that lists no models gets any name. Otherwise names that it does not list are
    skipped, and never sent."""
    known = [str(row["id"]) for row in models_of(provider.list_models())]
    own = studio.options(provider.name).get("model")
    named = (asked, studio.variable(model_variable(provider.name)), own)
    found = _first(named, known, provider.name)
    if found:
        return found
    shared = str(studio.settings.get("model") or "").strip()
    if shared in known:
        return shared
    return provider.default_model() or ""


def _first(named: Iterable[object], known: list[str], provider: str) -> str:
    for name in named:
        if not isinstance(name, str) or not (name := name.strip()):
            continue
        if not known or name in known:
            return name
        log.debug("a model that is not listed", extra={"provider": provider, "model": name})
    return ""


def models_of(rows: object) -> list[JsonObject]:
    """Return the rows of a provider's list that have an id."""
    if not isinstance(rows, list):
        return []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
