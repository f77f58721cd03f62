"""The built-in reader: fetches pages through the policy and extracts their text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from hermes.codec.values import replace
from hermes.core.effects import FetchUrl
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.ports import Fetcher, FetchResponse
from hermes.core.tools import ToolContext
from hermes.core.world import Clock
from hermes.web.page_cache import PageCache
from hermes.web.provider import SearchHit, WebPage
from hermes.web.reading import read_page
from hermes.web.robots import RobotsRules, parse_robots

log = logging.getLogger(__name__)

MOST_BYTES = 10_000_000
SECONDS = 30.0
ROBOTS_SECONDS = 10.0
ROBOTS_BYTES = 500_000
RULES_SECONDS = 3_600.0
MOST_HOSTS = 1_000
# Requests to one host at a time.
PER_HOST = 2
# The longest wait that a busy server may ask for.
MOST_WAIT_SECONDS = 10.0
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,text/*;q=0.8,*/*;q=0.5"


class PageReader:
    """Reads pages for all sessions of a process; a `WebProvider` that cannot search. It limits the
    requests to one host. With `robots`, it keeps to the robots.txt files that this fetches. They
    are not requested through the gate of a call: a model never sees them, and the gate has allowed
    the page of that host."""

    recipient = ""
    origin = ""

    def __init__(self, clock: Clock, robots: Fetcher | None = None) -> None:
        self._clock = clock
        self._robots = robots
        self._cache = PageCache(clock)
        self._rules: dict[str, tuple[float, RobotsRules]] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        raise ToolError("No search provider is configured.")

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        return await asyncio.gather(*(self._read(ctx, url) for url in urls))

    async def _read(self, ctx: ToolContext, url: str) -> WebPage:
        try:
            if not url.startswith(("http://", "https://")):
                raise ToolError("only http and https URLs can be read.")
            response = await self._fetch(ctx, url)
            page = await asyncio.to_thread(read_page, response)
        except EffectDenied:
            raise
        except ToolError as error:
            return WebPage(url=url, error=str(error))
        if not page.content.strip():
            return replace(page, error="the page has no text; it may need a browser.")
        if response.cut:
            page = replace(page, error=f"only the first {MOST_BYTES:,} bytes were read.")
        return page

    async def _fetch(self, ctx: ToolContext, url: str) -> FetchResponse:
        host = urlsplit(url).netloc
        if len(self._slots) >= MOST_HOSTS:
            self._slots.clear()
        slots = self._slots.setdefault(host, asyncio.Semaphore(PER_HOST))
        async with slots:
            if self._robots is not None and not (await self._rules_of(self._robots, url)).allows(
                url
            ):
                raise ToolError(f"the robots.txt of {host} does not allow programs to read it.")
            if cached := self._cache.find_fresh(url):
                return cached
            response = await self._request(ctx, url)
            if response.status in (429, 503):
                await self._wait(response)
                response = await self._request(ctx, url)
        return self._cache.store(url, response)

    async def _rules_of(self, robots: Fetcher, url: str) -> RobotsRules:
        """Return the rules of the host. A host without the file, or one that does not answer,
        allows everything."""
        scheme, host, *_ = urlsplit(url)
        known = self._rules.get(f"{scheme}://{host}")
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        effect = FetchUrl(url=urlunsplit((scheme, host, "/robots.txt", "", "")))
        rules = RobotsRules()
        try:
            response = await robots.fetch(effect, max_bytes=ROBOTS_BYTES, timeout=ROBOTS_SECONDS)
            if response.status == 200:
                rules = parse_robots(response.body.decode("utf-8", "replace"))
        except ToolError as error:
            log.info("no robots.txt", extra={"host": host, "why": str(error)})
        if len(self._rules) >= MOST_HOSTS:
            self._rules.clear()
        self._rules[f"{scheme}://{host}"] = self._clock.monotonic() + RULES_SECONDS, rules
        return rules

    async def _request(self, ctx: ToolContext, url: str) -> FetchResponse:
        headers = {"accept": ACCEPT, **self._cache.validators(url)}
        return await ctx.web.fetch(
            FetchUrl(url=url), headers=headers, max_bytes=MOST_BYTES, timeout=SECONDS
        )

    async def _wait(self, response: FetchResponse) -> None:
        """Wait as long as the server asks; raise ToolError if that is too long."""
        asked = response.headers.get("retry-after", "1").strip()
        seconds = float(asked) if asked.isdigit() else MOST_WAIT_SECONDS + 1
        if seconds > MOST_WAIT_SECONDS:
            why = f"the server is busy (status {response.status}); try again later."
            raise ToolError(why, transient=True)
        await self._clock.sleep(seconds)
