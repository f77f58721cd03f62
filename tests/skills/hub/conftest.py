"""A hub on real files whose sources are served on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.net.http import HttpClient
from hermes.skills.hub.hub import Hub, PreparedInstall
from hermes.skills.hub.lock import InstalledSkill
from hermes.skills.hub.source import HubClient, IndexCache
from hermes.skills.hub.sources.collections import Marketplace, Official
from hermes.skills.hub.sources.github import GitHub
from hermes.skills.hub.sources.registries import ClawHub, LobeHub, SkillsSh
from hermes.skills.hub.sources.websites import UrlSource, WellKnown
from hermes.web.fetcher import JudgedHttp
from tests.skills.bench import Bench
from tests.skills.hub.services import Services, serving


class Store:
    """A bench, the services, and the hub between them."""

    def __init__(self, folder: Path, services: Services, http: HttpClient) -> None:
        self.bench = Bench(folder)
        self.services = services
        self.token = ""
        self.seen: list[PreparedInstall] = []
        self.agreed = True
        ledger = self.bench.ledger
        urls = {**services.urls, "site": services.url}
        self.web = HubClient(JudgedHttp(http, urls).fetch, urls=services.urls, token=self._token)
        cache = IndexCache(ledger.folder / "index-cache", self.bench.clock)
        self.github = GitHub(self.web, cache, ledger.own_taps)
        self.sources = (
            Official((folder / "shipped",), folder / "official.json"),
            SkillsSh(self.web, self.github),
            ClawHub(self.web),
            Marketplace(self.github, cache),
            LobeHub(self.web, cache),
            UrlSource(self.web),
            self.github,
            WellKnown(self.web),
        )
        self.hub = Hub(self.bench.store, ledger, self.sources)

    async def _token(self) -> str:
        return self.token

    def confirm(self, prepared: PreparedInstall) -> bool:
        self.seen.append(prepared)
        return self.agreed

    async def install(self, identifier: str, **more: str | bool) -> InstalledSkill | None:
        return await self.hub.install(identifier, self.confirm, **more)  # type: ignore[arg-type]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    http = HttpClient()
    async with serving(Services()) as services:
        yield Store(tmp_path, services, http)
        await http.aclose()
