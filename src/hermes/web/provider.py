"""Who searches the web and reads its pages for the model: what such a provider is, and which one is
asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hermes.codec.values import Value
from hermes.core.tools import ToolContext


class Hit(Value):
    """One result of a search, as its author describes it."""

    url: str
    title: str = ""
    description: str = ""
    position: int = 0


class Page(Value):
    """What a page says, as Markdown; or why it cannot be told."""

    url: str
    title: str = ""
    content: str = ""
    error: str = ""


class WebProvider(Protocol):
    """`recipient` is who gets to know the question, as effects name them; what comes back is from
    `origin`. Both methods raise ToolError."""

    @property
    def recipient(self) -> str: ...

    @property
    def origin(self) -> str: ...

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[Hit]: ...

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[Page]: ...


class Web:
    """What the tools find with `ToolContext.kept`: who searches and who reads, where somebody
    does."""

    def __init__(
        self, searching: WebProvider | None = None, reading: WebProvider | None = None
    ) -> None:
        self.searching = searching
        self.reading = reading
