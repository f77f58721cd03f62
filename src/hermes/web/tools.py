"""The tools that search the web and read web pages."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Annotated

from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject
from hermes.core.effects import CallServer, Effect, FetchUrl
from hermes.core.errors import ToolError
from hermes.core.messages import Text
from hermes.core.tools import PathContext, Tool, ToolContext, ToolOutput, tool
from hermes.policy.outgoing import host_of
from hermes.web.provider import WebPage, WebProviders
from hermes.web.summaries import PageSummaries

MOST_HITS = 100
MOST_PAGES = 5
LEAST_CHARS = 2_000
NO_PROVIDER = "No provider {does}; install one with `hermes plugins`."


@tool(toolset="web", kind="fetch", conditional=True)
async def web_search(
    ctx: ToolContext,
    query: str,
    limit: Annotated[int, "1 to 100"] = 5,
) -> ToolOutput:
    """Search the web: titles, URLs and descriptions."""
    provider = ctx.service(WebProviders).search_provider
    if provider is None:
        raise ToolError(NO_PROVIDER.format(does="searches the web"))
    if not query.strip():
        raise ToolError("The query is empty.")
    hits = await provider.search(ctx, query, max(1, min(limit, MOST_HITS)))
    results = {"success": True, "data": {"web": [plain(hit) for hit in hits]}}
    return _output(results, provider.origin)


@tool(toolset="web", kind="fetch", conditional=True)
async def web_extract(
    ctx: ToolContext,
    urls: Annotated[list[str], "At most 5"],
    char_limit: Annotated[int, "Characters per page, at least 2000"] = 15_000,
) -> ToolOutput:
    """Read web pages as Markdown."""
    providers = ctx.service(WebProviders)
    provider = providers.extract_provider
    if provider is None:
        raise ToolError(NO_PROVIDER.format(does="reads web pages"))
    if not 1 <= len(urls) <= MOST_PAGES:
        raise ToolError(f"Give one to {MOST_PAGES} URLs.")
    pages = await provider.extract(ctx, urls)
    most = max(char_limit, LEAST_CHARS)
    results = [await _format_page(ctx, page, most, providers.summaries) for page in pages]
    hosts = (f"web:{host_of(page.url)}" for page in pages)
    return _output({"results": results}, provider.origin or ", ".join(dict.fromkeys(hosts)))


async def _format_page(
    ctx: ToolContext, page: WebPage, most: int, summaries: PageSummaries | None
) -> JsonObject:
    """Return the page, or the summary or the ends of a long one, whose text is stored in a file."""
    result: JsonObject = {"url": page.url, "title": page.title, "content": page.content}
    if page.error:
        result["error"] = page.error
    summary = await summaries.summarize(page) if summaries is not None else ""
    if not summary and len(page.content) <= most:
        return result
    path = await ctx.workspace.scratch("page.md", page.content.encode())
    if summary:
        result["content"] = f"{summary}\n\n[A summary; the whole page is in {path}]"
    else:
        head, tail = page.content[: most * 3 // 4], page.content[-most // 4 :]
        result["content"] = f"{head}\n\n[… the whole page is in {path} …]\n\n{tail}"
    return result


def _output(results: JsonObject, origin: str) -> ToolOutput:
    return ToolOutput(parts=(Text(text=encode(results).decode()),), origin=origin)


def with_effects(pattern: Tool, recipient: str) -> Tool:
    """Return the same tool with its effects: the pages, and the service if one receives the
    arguments. Queries run in parallel, because they change nothing."""

    def effects(_place: PathContext, arguments: JsonObject) -> Iterator[Effect]:
        urls = arguments.get("urls")
        for url in urls if isinstance(urls, list) else ():
            if isinstance(url, str):
                yield FetchUrl(url=url)
        if recipient:
            yield CallServer(
                server=recipient,
                tool=pattern.name,
                arguments=encode(arguments).decode(),
                changes=False,
            )

    made = copy(pattern)
    made.effects = effects
    return made
