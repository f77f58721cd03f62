"""Web providers of plugins, as the tools ask them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import replace
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext
from hermes.plugins.services import Service
from hermes.plugins.tools import SessionId
from hermes.web.provider import Hit, Page, Web

if TYPE_CHECKING:
    from hermes.plugins.providers import Services

SECONDS = 60.0


class PluggedWeb:
    """`hermes.web.provider.WebProvider`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.recipient = service.label
        self.origin = service.origin

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[Hit]:
        told = await self._asked(ctx, "search", query, limit)
        if isinstance(told, dict):
            inner = told.get("data")
            told = inner.get("web") if isinstance(inner, dict) else told.get("results")
        hits = self._read(list[Hit], told)[:limit]
        return [replace(hit, position=place) for place, hit in enumerate(hits, 1)]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[Page]:
        told = await self._asked(ctx, "extract", list(urls))
        if isinstance(told, dict):
            told = told.get("results")
        return [page for page in self._read(list[Page], told) if page.url in urls]

    async def _asked(self, ctx: ToolContext, method: str, *given: Any) -> Any:
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


def web_of(services: Services) -> Web:
    searching, reading = services.find("web", "search"), services.find("web", "extract")
    return Web(
        PluggedWeb(searching) if searching else None, PluggedWeb(reading) if reading else None
    )
