"""The interface of web providers, and the values that they return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from hermes.codec.values import Value
from hermes.core.tools import ToolContext

if TYPE_CHECKING:
    from hermes.web.summaries import PageSummaries


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
    """Searches the web and extracts pages. `recipient` names the service that receives the
    arguments, for effects; it is empty if Hermes requests the pages itself. `origin` is the source
    of the results; empty if the gate knows it. Both methods raise ToolError."""

    @property
    def recipient(self) -> str: ...

    @property
    def origin(self) -> str: ...

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]: ...

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]: ...


class WebProviders:
    """The active providers, which the tools get from `ToolContext.service`."""

    def __init__(
        self, searching: WebProvider | None = None, reading: WebProvider | None = None
    ) -> None:
        self.search_provider = searching
        self.extract_provider = reading
        # Set if long pages are to be summarized.
        self.summaries: PageSummaries | None = None
