"""Providers that plugins bring, by kind: which there are, which one is asked, and which tools there
are because of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.plugins.integration import Service

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.core.tools import Tool
    from hermes.plugins.surface import ServiceKind
    from hermes.tools.toolbox import SessionTools

# The tool that a method of a kind makes possible.
TOOLS: dict[str, tuple[ServiceKind, str]] = {
    "text_to_speech": ("tts", "synthesize"),
    "transcribe": ("stt", "transcribe"),
    "web_extract": ("web", "extract"),
    "web_search": ("web", "search"),
}


class PluginProviders:
    def __init__(self, settings: Settings, tools: SessionTools) -> None:
        self._settings = settings
        self._tools = tools
        self._held: dict[tuple[str, str], Service] = {}

    def add(self, service: Service) -> None:
        self._held[service.offer.kind, service.name] = service

    def pick(self, kind: ServiceKind, method: str) -> Service:
        """The one that the settings name, else the first that can; ToolError."""
        wanted = str(getattr(self._settings, kind).provider)
        named = sorted(name for held, name in self._held if held == kind)
        if wanted and wanted not in named:
            known = ", ".join(named) or "none"
            raise ToolError(f"There is no {kind} provider {wanted!r}; there are: {known}.")
        for name in [wanted] if wanted else named:
            service = self._held[kind, name]
            if service.has(method) and (service.offer.available or wanted):
                return service
        raise ToolError(f"No {kind} provider can do that here; `hermes plugins list` says why.")

    def find(self, kind: ServiceKind, method: str) -> Service | None:
        try:
            return self.pick(kind, method)
        except ToolError:
            return None

    def offer_tools(self) -> None:
        """Those that somebody can answer, and no others."""
        from hermes.tools.catalogue import CatalogueEntry

        for name, (kind, method) in TOOLS.items():
            found = self.find(kind, method)
            entry = None
            if found is not None:
                made = _make_tool(name, found)
                entry = CatalogueEntry(made.spec, made)
            self._tools.offer(name, entry)


def _make_tool(name: str, service: Service) -> Tool:
    if service.offer.kind == "web":
        from hermes.web import tools as web

        pattern = web.web_search if name == "web_search" else web.web_extract
        return web.with_effects(pattern, lambda: service.label)
    from hermes.speech import tools as speech

    pattern = speech.transcribe if name == "transcribe" else speech.text_to_speech
    return speech.with_effects(pattern, lambda: service.label)
