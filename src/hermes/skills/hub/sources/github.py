"""Skill source: GitHub repositories, with App tokens."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from posixpath import basename, dirname
from urllib.parse import quote

from hermes.codec.values import Value
from hermes.core.errors import ConfigError, HermesError, NotFound
from hermes.core.world import Clock
from hermes.credentials.oauth.signed_jwt import RsaKey, parse_private_key, sign_jwt
from hermes.skills.hub.source import (
    HubClient,
    IndexCache,
    SkillListing,
    SkillPackage,
    SkillSource,
    after_prefix,
    best_matches,
    listing_of,
    repo_trust,
)
from hermes.skills.hub.sources.websites import MOST_BYTES, MOST_FILE_BYTES, MOST_FILES
from hermes.skills.skill import MAIN

VARIABLES = ("GITHUB_APP_ID", "GITHUB_APP_INSTALLATION_ID", "GITHUB_APP_PRIVATE_KEY_PATH")
# Clock skew before, lifetime after; GitHub allows ten minutes.
_BEFORE, _AFTER = 60, 540
# Tokens are valid for an hour; renewed early.
_GOOD_SECONDS = 3_000.0


class _TokenReply(Value):
    token: str


class GitHubApp:
    """Access to GitHub as an App. `variables` hold the App id, the installation id and the key
    file."""

    def __init__(self, variables: Mapping[str, str], clock: Clock) -> None:
        self._id, self._installation, self._file = (variables.get(name, "") for name in VARIABLES)
        self._clock = clock
        self._cached = ("", 0.0)

    @property
    def is_set(self) -> bool:
        return bool(self._id and self._installation and self._file)

    async def token(self, web: HubClient) -> str:
        """Return an access token of the installation. Raises ConfigError for an unusable key,
        HermesError when GitHub refuses it."""
        token, until = self._cached
        if self._clock.now() < until:
            return token
        now = int(self._clock.now())
        claims = {"iat": now - _BEFORE, "exp": now + _AFTER, "iss": self._id}
        claim = sign_jwt(claims, self._key())
        api, installation = web.url("github_api"), quote(self._installation, safe="")
        url = f"{api}/app/installations/{installation}/access_tokens"
        headers = {"accept": "application/vnd.github+json", "authorization": f"Bearer {claim}"}
        token = (await web.post(_TokenReply, url, headers, {})).token
        self._cached = token, self._clock.now() + _GOOD_SECONDS
        return token

    def _key(self) -> RsaKey:
        path = Path(self._file).expanduser()
        try:
            return parse_private_key(path.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"GITHUB_APP_PRIVATE_KEY_PATH: {path} cannot be read; check it."
            ) from error
        except ConfigError as error:
            raise ConfigError(f"GITHUB_APP_PRIVATE_KEY_PATH: {path}: {error}") from error


AT_ONCE = 8
_IDENTIFIER = re.compile(r"[\w.-]+/[\w.-]+(?:/[^\s]*)?")
_LINK = "120000"


class Blob(Value):
    path: str
    mode: str = ""
    type: str = "blob"
    sha: str = ""
    size: int = 0


class _Repo(Value):
    default_branch: str = "main"


class _Tree(Value):
    tree: tuple[Blob, ...] = ()
    truncated: bool = False


class GitHub(SkillSource):
    """Skills in GitHub repositories. `taps` are searched: `owner/repo` or `owner/repo/folder`."""

    id = "github"

    def __init__(
        self, web: HubClient, cache: IndexCache, taps: Callable[[], Sequence[str]]
    ) -> None:
        self._web = web
        self._cache = cache
        self._taps = taps
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._trees: dict[str, tuple[str, tuple[Blob, ...]]] = {}

    def claims(self, identifier: str) -> bool:
        is_path = "://" not in identifier and _IDENTIFIER.fullmatch(identifier) is not None
        return is_path or "github.com/" in identifier

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        listings: list[SkillListing] = []
        problems: list[HermesError] = []
        for tap in self._taps():
            try:
                listings += await self._cache.listings(f"github {tap}", partial(self._all, tap))
            except HermesError as error:
                problems.append(error)
        if problems and not listings:
            raise problems[0]
        return best_matches(query, listings, limit)

    async def package(self, identifier: str) -> SkillPackage:
        repo, path, ref = split_identifier(identifier)
        branch, blobs = await self.tree(repo, ref)
        folder = self._folder(repo, path, blobs)
        inner = [blob for blob in blobs if blob.path.startswith(f"{folder}/" if folder else "")]
        for blob in inner:
            if blob.mode == _LINK:
                raise HermesError(f"{repo}: {blob.path} is a link; refused.")
            if blob.size > MOST_FILE_BYTES:
                raise HermesError(f"{repo}: {blob.path} is too large ({blob.size} bytes).")
        if len(inner) > MOST_FILES or sum(blob.size for blob in inner) > MOST_BYTES:
            raise HermesError(f"{repo}: the skill is too large ({len(inner)} files).")
        prefix = len(folder) + 1 if folder else 0
        contents = await asyncio.gather(*(self.content(repo, branch, blob) for blob in inner))
        names = (blob.path[prefix:] for blob in inner)
        files = dict(zip(names, contents, strict=True))
        return SkillPackage(listing=self._listing(repo, folder, files[MAIN]), files=files)

    async def tree(self, repo: str, ref: str = "") -> tuple[str, tuple[Blob, ...]]:
        """Return the branch and its blobs, cached."""
        if (key := f"{repo}@{ref}") not in self._trees:
            api, headers = self._web.url("github_api"), await self.headers()
            if not ref:
                ref = (await self._web.json(_Repo, f"{api}/repos/{repo}", headers)).default_branch
            url = f"{api}/repos/{repo}/git/trees/{quote(ref, safe='')}?recursive=1"
            found = await self._web.json(_Tree, url, headers)
            blobs = tuple(each for each in found.tree if each.type == "blob")
            self._trees[key] = ref, blobs
        return self._trees[key]

    async def content(self, repo: str, branch: str, blob: Blob) -> bytes:
        """Return a file, verified against its blob hash."""
        raw = self._web.url("github_raw")
        url = f"{raw}/{repo}/{quote(branch)}/{quote(blob.path)}"
        async with self._slots:
            data = await self._web.get(url)
        digest = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if blob.sha and digest != blob.sha:
            raise HermesError(f"{url} does not match the repository's hash; try again.")
        return data

    async def headers(self) -> dict[str, str]:
        token = await self._web.token()
        headers = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
        return {**headers, "authorization": f"Bearer {token}"} if token else headers

    async def _all(self, tap: str) -> tuple[SkillListing, ...]:
        repo, path, ref = split_identifier(tap)
        branch, blobs = await self.tree(repo, ref)
        mains = [b for b in blobs if basename(b.path) == MAIN and b.path.startswith(path)]

        async def load_listing(blob: Blob) -> SkillListing | None:
            try:
                data = await self.content(repo, branch, blob)
                return self._listing(repo, dirname(blob.path), data)
            except HermesError:
                return None

        found = await asyncio.gather(*(load_listing(blob) for blob in mains))
        return tuple(one for one in found if one is not None)

    def _listing(self, repo: str, folder: str, main: bytes) -> SkillListing:
        identifier = f"{repo}/{folder}" if folder else repo
        url = f"https://github.com/{repo}/tree/HEAD/{folder}"
        return listing_of(main, self.id, identifier, trust=repo_trust(repo), url=url)

    def _folder(self, repo: str, path: str, blobs: Sequence[Blob]) -> str:
        """Find the skill's folder by its path or by the last part of the path."""
        folders = skill_folders(blobs)
        if path in folders:
            return path
        by_name = [each for each in folders if path and basename(each) == basename(path)]
        chosen = by_name or ([] if path else folders)
        if len(chosen) == 1:
            return chosen[0]
        near = tuple(f"{repo}/{each}" for each in (chosen or folders)[:5])
        what = "several skills; name one" if len(chosen) > 1 else f"no skill at {path!r}"
        raise NotFound(f"{repo} has {what}.", near=near)


def skill_folders(blobs: Sequence[Blob]) -> list[str]:
    return [dirname(blob.path) for blob in blobs if basename(blob.path) == MAIN]


def split_identifier(identifier: str) -> tuple[str, str, str]:
    """Split `owner/repo/path` or a GitHub URL into repository, path and branch."""
    plain = after_prefix(identifier, "github") or identifier
    plain = re.sub(r"^(?:https?://)?(?:www\.)?github\.com/", "", plain).strip("/")
    parts = plain.split("/")
    if len(parts) < 2 or not all(parts[:2]):
        raise NotFound(f"{identifier!r} is unknown; write owner/repo/path.")
    repo, rest = "/".join(parts[:2]).removesuffix(".git"), parts[2:]
    ref = ""
    if rest[:1] in (["tree"], ["blob"]) and len(rest) > 1:
        ref, rest = rest[1], rest[2:]
    return repo, "/".join(rest).removesuffix(f"/{MAIN}").removesuffix(MAIN).strip("/"), ref
