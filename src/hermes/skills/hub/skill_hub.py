"""The skill hub of a home: its sources, its GitHub token, and publishing."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.credentials.other_programs import read_gh_token
from hermes.net.http import HttpClient
from hermes.skills.files import content_hash, read_tree
from hermes.skills.hub.hub import Hub
from hermes.skills.hub.lock import scan_files
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
        """Publish a skill and return the URL of the pull request. The scan must rate the skill
        safe."""
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


class _Object(Value):
    sha: str = ""


class _Ref(Value):
    object: _Object


class _CommitTree(Value):
    tree: _Object


class _Permissions(Value):
    push: bool = False


class _Repo(Value):
    full_name: str
    default_branch: str = "main"
    permissions: _Permissions = _Permissions()


class _Pull(Value):
    html_url: str


async def publish_skill(
    web: HubClient, github: GitHub, repo: str, name: str, files: Mapping[str, bytes], digest: str
) -> str:
    """Open a pull request with a skill and return its URL. Forks the repository when the token may
    not push. Raises UsageError without a token."""
    if not await web.token():
        raise UsageError("Publishing needs GITHUB_TOKEN; set it with `hermes config set`.")
    repos, headers = f"{web.url('github_api')}/repos", await github.headers()
    target = await web.json(_Repo, f"{repos}/{repo}", headers)
    fork = target
    if not target.permissions.push:
        fork = await web.post(_Repo, f"{repos}/{repo}/forks", headers, {})
    git = f"{repos}/{fork.full_name}/git"
    try:
        ref = await web.json(_Ref, f"{git}/ref/heads/{fork.default_branch}", headers)
    except NotFound as error:
        raise HermesError(
            f"GitHub has not finished creating {fork.full_name}, or it has no commit; try again "
            "in a minute."
        ) from error
    base = await web.json(_CommitTree, f"{git}/commits/{ref.object.sha}", headers)
    entries: list[JsonObject] = []
    for path, data in sorted(files.items()):
        body = {"content": base64.b64encode(data).decode(), "encoding": "base64"}
        sha = (await web.post(_Object, f"{git}/blobs", headers, body)).sha
        file = {"path": f"skills/{name}/{path}", "mode": "100644", "type": "blob", "sha": sha}
        entries.append(file)
    asked: JsonObject = {"base_tree": base.tree.sha, "tree": entries}
    tree = await web.post(_Object, f"{git}/trees", headers, asked)
    title, branch = f"Add the skill {name}", f"skill-{name}-{digest[:8]}"
    asked = {"message": title, "tree": tree.sha, "parents": [ref.object.sha]}
    commit = await web.post(_Object, f"{git}/commits", headers, asked)
    asked = {"ref": f"refs/heads/{branch}", "sha": commit.sha}
    await web.post(JsonObject, f"{git}/refs", headers, asked)
    owner = fork.full_name.partition("/")[0]
    asked = {
        "title": title,
        "head": branch if fork is target else f"{owner}:{branch}",
        "base": target.default_branch,
        "body": f"The skill `{name}` with {len(files)} file(s).",
    }
    return (await web.post(_Pull, f"{repos}/{repo}/pulls", headers, asked)).html_url
