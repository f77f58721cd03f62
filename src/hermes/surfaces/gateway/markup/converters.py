"""Finds the converter that a platform names in `Abilities.markup`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

Converter = Callable[[str], str]

# Loaded when a platform uses them.
_CONVERTERS = {
    "plain": "hermes.surfaces.gateway.markup.plain:to_plain",
    "telegram-html": "hermes.surfaces.gateway.markup.telegram_html:to_telegram_html",
    "matrix-html": "hermes.surfaces.gateway.markup.matrix_html:to_matrix_html",
}


def find_converter(name: str) -> Converter:
    """Markdown to the markup with this name. KeyError when there is none."""
    module, _, function = _CONVERTERS[name].partition(":")
    return cast(Converter, getattr(import_module(module), function))
