"""The hub joined to an app: its sources, the way to the network, the token for GitHub."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from hermes.core.effects import Allow
from hermes.core.errors import HermesError, UsageError
from hermes.credentials.foreign import token_of_gh
from hermes.policy.urls.judging import MOST_REDIRECTS, Urls
from hermes.policy.urls.resolver import SystemResolver
from hermes.providers.http import Answer as HttpAnswer
from hermes.providers.http import Http, Timeouts
from hermes.skills.files import content_hash, read_tree
from hermes.skills.hub.cache import IndexCache
from hermes.skills.hub.github_app import GitHubApp
from hermes.skills.hub.hub import Hub
from hermes.skills.hub.listing import Source
from hermes.skills.hub.sources.clawhub import ClawHub
from hermes.skills.hub.sources.direct import Direct
from hermes.skills.hub.sources.github import GitHub, split_identifier
from hermes.skills.hub.sources.lobehub import LobeHub
from hermes.skills.hub.sources.marketplace import Marketplace
from hermes.skills.hub.sources.official import Official
from hermes.skills.hub.sources.skills_sh import SkillsSh
from hermes.skills.hub.sources.well_known import WellKnown
from hermes.skills.hub.transfer import Publishing, Snapshot, read_snapshot, snapshot
from hermes.skills.hub.trust import scan_files
from hermes.skills.hub.web import MOST_BYTES, Answer, Web
from hermes.skills.scan_skill import scan_skill
from hermes.skills.seeding import OPTIONAL, SHIPPED

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.app.skills.skilled import Skilled

REDIRECTS = (301, 302, 303, 307, 308)
TIMEOUTS = Timeouts(connect=10, read=30)


class SkillHub(Hub):
    """A Hub with everything that it needs of this program."""

    def __init__(self, app: App, skilled: Skilled) -> None:
        proxied = bool(app.settings.network.proxy)
        way = Way(app.models.http, app.settings.skills.hub_urls, proxied=proxied)
        self._skilled = skilled
        self._env = app.env
        self._app = GitHubApp(skilled.variables(), app.world.clock)
        self._web = Web(way.fetch, urls=app.settings.skills.hub_urls, token=self._token)
        cache = IndexCache(skilled.ledger.folder / "index-cache", app.world.clock)
        self._github = GitHub(self._web, cache, skilled.ledger.taps)
        official = app.home.cache / "skills-official.json"
        sources: tuple[Source, ...] = (
            Official((OPTIONAL, SHIPPED), official),
            SkillsSh(self._web, self._github),
            ClawHub(self._web),
            Marketplace(self._github, cache),
            LobeHub(self._web, cache),
            Direct(self._web),
            # An address of GitHub is one of a repository, any other one of a site.
            self._github,
            WellKnown(self._web),
        )
        super().__init__(skilled.shelf, skilled.ledger, sources, scan_skill)

    async def publish(self, name: str, repo: str) -> str:
        """The address of the pull request. What the scan does not call safe is not published."""
        entry = self._skilled.shelf.find(name)
        tree = read_tree(Path(entry.folder))
        found = scan_files(tree, scan_skill)
        if found.verdict != "safe":
            raise UsageError(
                f"The scan calls {name} {found.verdict}; `hermes skills audit --deep`."
            )
        publishing = Publishing(self._web, self._github)
        return await publishing.publish(repo, entry.name, tree, content_hash(tree))

    def snapshot(self) -> Snapshot:
        return snapshot(self.ledger)

    def read_snapshot(self, raw: bytes) -> Snapshot:
        return read_snapshot(raw)

    def add_tap(self, tap: str) -> tuple[str, ...]:
        repo, path, _ = split_identifier(tap)
        plain = f"{repo}/{path}" if path else repo
        self.ledger.write_taps(tuple(dict.fromkeys((*self.ledger.own_taps(), plain))))
        return self.ledger.taps()

    def remove_tap(self, tap: str) -> tuple[str, ...]:
        own = self.ledger.own_taps()
        if tap not in own:
            raise UsageError(f"{tap} is no tap of yours; `hermes skills tap list` shows them.")
        self.ledger.write_taps(tuple(each for each in own if each != tap))
        return self.ledger.taps()

    async def _token(self) -> str:
        known = self._skilled.variables()
        if found := known.get("GITHUB_TOKEN") or known.get("GH_TOKEN"):
            return found
        program = shutil.which("gh", path=self._env.get("PATH"))
        if program and (said := await token_of_gh(program)):
            return said
        return await self._app.token(self._web) if self._app.is_set else ""


class Way:
    """Asks only addresses that the policy lets through, at every redirect again. `own` addresses
    are those that the person has set, and may lie anywhere. Behind a proxy names are looked up
    there, so only the text of an address can be judged here."""

    def __init__(self, http: Http, own: Mapping[str, str], *, proxied: bool = False) -> None:
        self._http = http
        self._own = tuple(url.rstrip("/") + "/" for url in own.values())
        self._proxied = proxied
        self._urls = Urls(SystemResolver())

    async def fetch(self, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        for _ in range(MOST_REDIRECTS + 1):
            await self._check(url)
            async with self._asked(url, headers, body) as answer:
                location = answer.headers.get("location", "")
                if answer.status not in REDIRECTS or not location or body is not None:
                    data = await answer.read(MOST_BYTES + 1)
                    if len(data) > MOST_BYTES:
                        raise HermesError(f"{url} sends more than {MOST_BYTES} bytes; refused.")
                    return Answer(status=answer.status, headers=answer.headers, body=data)
            url = urljoin(url, location)
            # A key for one place is not for the next.
            headers = {name: value for name, value in headers.items() if name != "authorization"}
        raise HermesError(f"{url} was redirected more than {MOST_REDIRECTS} times.")

    async def _check(self, url: str) -> None:
        if url.startswith(self._own):
            return
        if self._proxied:
            decision = self._urls.glance(url)
        else:
            decision = (await self._urls.judge(url)).decision
        if not isinstance(decision, Allow):
            raise HermesError(f"{url} is not asked: {decision.reason}")

    def _asked(
        self, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        if body is None:
            return self._http.get(url, headers=headers, timeouts=TIMEOUTS)
        return self._http.post(url, body=body, headers=headers, timeouts=TIMEOUTS)
