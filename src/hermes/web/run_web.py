"""Chooses the providers of the web tools for a process, and offers the tools to sessions."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.config.run_context import RunContext
from hermes.core.errors import ToolError
from hermes.core.tools import Tool, ToolContext
from hermes.net.http import HttpClient
from hermes.policy.rules import Blocked
from hermes.policy.urls.url_policy import make_url_policy
from hermes.web.fetcher import WebFetcher
from hermes.web.keyless_search import DdgsSearch, DuckDuckGo, has_ddgs
from hermes.web.provider import SearchHit, WebPage, WebProvider, WebProviders
from hermes.web.reader import PageReader
from hermes.web.search_services import HttpSearch, search_services
from hermes.web.tools import web_extract, web_search, with_effects

BUILT_IN = "built-in"
DUCKDUCKGO = "duckduckgo"
DDGS = "ddgs"


class RunWeb:
    """The web providers of one process. The settings decide, then the keys: a plugin that offers
    one, a service with a key, and finally what works without a key."""

    def __init__(self, run: RunContext, http: HttpClient) -> None:
        self._run = run
        self._http = http
        self._reader: PageReader | None = None

    def providers(self, plugins: WebProviders) -> WebProviders:
        settings = self._run.settings.web
        return WebProviders(
            self._searching(settings.search_backend or settings.backend, plugins),
            self._reading(settings.extract_backend or settings.backend, plugins),
        )

    def _searching(self, name: str, plugins: WebProviders) -> WebProvider | None:
        if not name and plugins.search_provider is not None:
            return plugins.search_provider
        if not name:
            name = self._first_service() or (DDGS if has_ddgs() else DUCKDUCKGO)
        if name == DUCKDUCKGO:
            return DuckDuckGo()
        if name == DDGS:
            return DdgsSearch()
        if name == BUILT_IN:
            return None
        unknown = Unusable(f"There is no web backend {name!r}; see `web.backend`.")
        return self._service(name) or plugins.search_provider or unknown

    def _reading(self, name: str, plugins: WebProviders) -> WebProvider | None:
        if not name and plugins.extract_provider is not None:
            return plugins.extract_provider
        service = search_services().get(name)
        if service is not None and service.extract is not None:
            return self._service(name)
        if name and plugins.extract_provider is not None:
            return plugins.extract_provider
        if self._reader is None:
            robots = self._robots_fetcher() if self._run.settings.web.respect_robots else None
            self._reader = PageReader(self._run.world.clock, robots)
        return self._reader

    def _robots_fetcher(self) -> WebFetcher:
        network = self._run.settings.network
        return WebFetcher(
            make_url_policy(
                None,
                self._run.settings.security.allow_private_urls,
                Blocked(),
                self._run.world.clock.monotonic,
            ),
            proxy=network.proxy,
            no_proxy=network.no_proxy,
            ca_file=network.ca_bundle or None,
        )

    def _first_service(self) -> str:
        """Return the first service that has what it needs."""
        secret = self._run.config.secrets.get
        for name, service in search_services().items():
            needed = service.key or service.url_variable
            if secret(needed):
                return name
        return ""

    def _service(self, name: str) -> WebProvider | None:
        service = search_services().get(name)
        if service is None:
            return None
        secret = self._run.config.secrets.get
        needed = service.key or service.url_variable
        if not secret(needed):
            return Unusable(f"The web backend {name} needs {needed}; set it in `.env`.")
        return HttpSearch(name, service, self._http, secret)


class Unusable:
    """A configured provider that cannot be used; the model is told why."""

    recipient = ""
    origin = "hermes"

    def __init__(self, why: str) -> None:
        self._why = why

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        raise ToolError(self._why)

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        raise ToolError(self._why)


def make_tool(name: str, providers: WebProviders) -> Tool:
    """Return the tool with the effects of its provider."""
    is_search = name == web_search.name
    provider = providers.search_provider if is_search else providers.extract_provider
    recipient = provider.recipient if provider is not None else ""
    return with_effects(web_search if is_search else web_extract, recipient)
