"""Web providers of plugins, as the tools ask them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import replace
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext
from hermes.plugins.integration import Service
from hermes.plugins.surface import SessionId
from hermes.web.tools import SearchHit, WebPage, WebProviders

if TYPE_CHECKING:
    from hermes.plugins.providers import PluginProviders

SECONDS = 60.0


class PluginWeb:
    """`hermes.web.tools.WebProvider`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.recipient = service.label
        self.origin = service.origin

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        told = await self._ask(ctx, "search", query, limit)
        if isinstance(told, dict):
            inner = told.get("data")
            told = inner.get("web") if isinstance(inner, dict) else told.get("results")
        hits = self._read(list[SearchHit], told)[:limit]
        return [replace(hit, position=place) for place, hit in enumerate(hits, 1)]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        told = await self._ask(ctx, "extract", list(urls))
        if isinstance(told, dict):
            told = told.get("results")
        return [page for page in self._read(list[WebPage], told) if page.url in urls]

    async def _ask(self, ctx: ToolContext, method: str, *given: Any) -> Any:
        session_id = ctx.kept(SessionId).id
        told = await self._service.ask(
            method, *given, seconds=SECONDS, session_id=session_id, ctx=ctx
        )
        if isinstance(told, dict) and (error := told.get("error")):
            raise ToolError(f"{self._service.name}: {error}")
        return told

    def _read(self, kind: Any, told: Any) -> Any:
        try:
            return convert(kind, told)
        except DecodeError as error:
            raise ToolError(
                f"What {self._service.name} answers cannot be understood: {error}."
            ) from error


def web_of(services: PluginProviders) -> WebProviders:
    searching, reading = services.find("web", "search"), services.find("web", "extract")
    return WebProviders(
        PluginWeb(searching) if searching else None, PluginWeb(reading) if reading else None
    )
