"""The skill hub of a home: sources, HTTP client and GitHub token."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.errors import UsageError
from hermes.credentials.other_programs import read_gh_token
from hermes.net.http import HttpClient
from hermes.skills.files import content_hash, read_tree
from hermes.skills.hub.hub import Hub
from hermes.skills.hub.lock import scan_files
from hermes.skills.hub.publish import publish_skill
from hermes.skills.hub.source import HubClient, IndexCache, SkillSource
from hermes.skills.hub.sources.collections import Marketplace, Official
from hermes.skills.hub.sources.github import GitHub, GitHubApp, split_identifier
from hermes.skills.hub.sources.registries import ClawHub, LobeHub, SkillsSh
from hermes.skills.hub.sources.websites import UrlSource, WellKnown
from hermes.skills.seeding import BUNDLED_SKILLS, OPTIONAL
from hermes.web.fetcher import JudgedHttp

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.skills.library import SkillLibrary


class SkillHub(Hub):
    """A `Hub` with the configured sources."""

    def __init__(self, run: RunContext, http: HttpClient, library: SkillLibrary) -> None:
        proxied = bool(run.settings.network.proxy)
        client = JudgedHttp(http, run.settings.skills.hub_urls, proxied=proxied)
        self._library = library
        self._env = run.env
        self._app = GitHubApp(library.variables(), run.world.clock)
        self._web = HubClient(client.fetch, urls=run.settings.skills.hub_urls, token=self._token)
        cache = IndexCache(library.ledger.folder / "index-cache", run.world.clock)
        self._github = GitHub(self._web, cache, library.ledger.taps)
        official = run.home.cache / "skills-official.json"
        sources: tuple[SkillSource, ...] = (
            Official((OPTIONAL, BUNDLED_SKILLS), official),
            SkillsSh(self._web, self._github),
            ClawHub(self._web),
            Marketplace(self._github, cache),
            LobeHub(self._web, cache),
            UrlSource(self._web),
            # GitHub claims repository URLs, so it comes before websites.
            self._github,
            WellKnown(self._web),
        )
        super().__init__(library.store, library.ledger, sources)

    async def publish(self, name: str, repo: str) -> str:
        """Returns the URL of the pull request. The scan must rate the skill safe."""
        entry = self._library.store.find(name)
        tree = read_tree(Path(entry.folder))
        found = scan_files(tree)
        if found.verdict != "safe":
            raise UsageError(
                f"The scan rates {name} {found.verdict}; see `hermes skills audit --deep`."
            )
        digest = content_hash(tree)
        return await publish_skill(self._web, self._github, repo, entry.name, tree, digest)

    def add_tap(self, tap: str) -> tuple[str, ...]:
        repo, path, _ = split_identifier(tap)
        plain = f"{repo}/{path}" if path else repo
        self.ledger.write_taps(tuple(dict.fromkeys((*self.ledger.own_taps(), plain))))
        return self.ledger.taps()

    def remove_tap(self, tap: str) -> tuple[str, ...]:
        own = self.ledger.own_taps()
        if tap not in own:
            raise UsageError(f"You have no tap {tap}; `hermes skills tap list` shows your taps.")
        self.ledger.write_taps(tuple(each for each in own if each != tap))
        return self.ledger.taps()

    async def _token(self) -> str:
        known = self._library.variables()
        if found := known.get("GITHUB_TOKEN") or known.get("GH_TOKEN"):
            return found
        program = shutil.which("gh", path=self._env.get("PATH"))
        if program and (token := await read_gh_token(program)):
            return token
        return await self._app.token(self._web) if self._app.is_set else ""
