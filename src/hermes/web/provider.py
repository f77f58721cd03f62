"""The interface of web search providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.codec.values import Value
from hermes.core.tools import ToolContext


class SearchHit(Value):
    """One search result."""

    url: str
    title: str = ""
    description: str = ""
    position: int = 0


class WebPage(Value):
    """A page as Markdown, or why it could not be read."""

    url: str
    title: str = ""
    content: str = ""
    error: str = ""


class WebProvider(Protocol):
    """`recipient` names who receives the query, for effects; results have the origin `origin`. Both
    methods raise ToolError."""

    @property
    def recipient(self) -> str: ...

    @property
    def origin(self) -> str: ...

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]: ...

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]: ...


class WebProviders:
    """What the tools get from `ToolContext.kept`: the providers, where there are any."""

    def __init__(
        self, searching: WebProvider | None = None, reading: WebProvider | None = None
    ) -> None:
        self.search_provider = searching
        self.extract_provider = reading
