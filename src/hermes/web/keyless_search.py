"""Web search without a key: the HTML page of DuckDuckGo, or the package ddgs if it is installed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from hermes.core.effects import FetchUrl
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext
from hermes.web.html_tree import Element, parse_html
from hermes.web.provider import SearchHit, WebPage
from hermes.web.reading import decode_body

DUCKDUCKGO = "https://html.duckduckgo.com/html/"
SECONDS = 20.0
MOST_BYTES = 3_000_000
# The page is for people, so it must not be asked by many at once.
BLOCKED = (
    "DuckDuckGo asks whether a person searches; wait a few minutes, or set up another provider "
    "with `hermes tools web`."
)


class DuckDuckGo:
    """A `WebProvider` that reads the result page of DuckDuckGo; it cannot extract pages."""

    recipient = "duckduckgo.com"
    origin = "web:duckduckgo.com"

    def __init__(self, url: str = DUCKDUCKGO) -> None:
        self._url = url

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        effect = FetchUrl(url=f"{self._url}?{urlencode({'q': query})}")
        response = await ctx.web.fetch(effect, max_bytes=MOST_BYTES, timeout=SECONDS)
        if response.status not in (200, 202):
            why = f"DuckDuckGo answered with status {response.status}; try again later."
            raise ToolError(why, transient=True)
        html = decode_body(response.body, response.headers.get("content-type", ""))
        root = parse_html(html)
        hits = _read_results(root)
        if not hits and (response.status == 202 or "anomaly" in html):
            raise ToolError(BLOCKED)
        return [
            SearchHit(url=url, title=title, description=text, position=position)
            for position, (url, title, text) in enumerate(hits[:limit], 1)
        ]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        raise ToolError("DuckDuckGo cannot read pages.")


def _read_results(root: Element) -> list[tuple[str, str, str]]:
    """Return URL, title and description of each result; advertisements are left out."""
    found: list[tuple[str, str, str]] = []
    for each in root.walk():
        classes = each.attributes.get("class", "").split()
        if "result__a" in classes and (url := _target(each.attributes.get("href", ""))):
            found.append((url, " ".join(each.text().split()), ""))
        elif "result__snippet" in classes and found and not found[-1][2]:
            url, title, _ = found[-1]
            found[-1] = (url, title, " ".join(each.text().split()))
    return found


def _target(href: str) -> str:
    """Return the address behind a link of the result page; "" for advertisements."""
    parts = urlsplit(href)
    if parts.path.startswith("/l/"):
        return parse_qs(parts.query).get("uddg", [""])[0]
    if parts.path.startswith("/y.js") or not href.startswith(("http://", "https://")):
        return ""
    return href


def has_ddgs() -> bool:
    return importlib.util.find_spec("ddgs") is not None


class DdgsSearch:
    """A `WebProvider` that asks several search engines through the package ddgs."""

    recipient = "search engines (ddgs)"
    origin = "web:search"

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        hits = await asyncio.to_thread(_ask_ddgs, query, limit)
        return [
            SearchHit(
                url=str(hit.get("href", "")),
                title=str(hit.get("title", "")),
                description=str(hit.get("body", "")),
                position=position,
            )
            for position, hit in enumerate(hits[:limit], 1)
        ]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        raise ToolError("ddgs cannot read pages.")


def _ask_ddgs(query: str, limit: int) -> list[dict[str, Any]]:
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    try:
        return list(DDGS(timeout=int(SECONDS)).text(query, max_results=limit))
    except DDGSException as error:
        raise ToolError(f"The search engines did not answer: {error}.") from error
