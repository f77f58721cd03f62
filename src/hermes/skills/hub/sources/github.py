"""Skill source: GitHub repositories. Taps are searched; any repository can be named."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from posixpath import basename, dirname
from urllib.parse import quote

from hermes.codec.values import Value
from hermes.core.errors import HermesError, NotFound
from hermes.skills.hub.archives import MOST_BYTES, MOST_FILE_BYTES, MOST_FILES
from hermes.skills.hub.cache import IndexCache
from hermes.skills.hub.listing import (
    SkillListing,
    SkillPackage,
    after_prefix,
    count_matches,
    repo_trust,
)
from hermes.skills.hub.web import HubClient
from hermes.skills.skill import MAIN, parse_skill

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


class GitHub:
    """`taps` are searched: `owner/repo` or `owner/repo/folder`."""

    id = "github"

    def __init__(
        self, web: HubClient, cache: IndexCache, taps: Callable[[], Sequence[str]]
    ) -> None:
        self._web = web
        self._cache = cache
        self._taps = taps
        self._trees: dict[str, tuple[str, tuple[Blob, ...]]] = {}

    def claims(self, identifier: str) -> bool:
        if after_prefix(identifier, self.id) or "github.com/" in identifier:
            return True
        return "://" not in identifier and _IDENTIFIER.fullmatch(identifier) is not None

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        found: list[SkillListing] = []
        problems: list[HermesError] = []
        for tap in self._taps():
            try:
                found += await self._cache.listings(f"github {tap}", partial(self._all, tap))
            except HermesError as error:
                problems.append(error)
        if problems and not found:
            raise problems[0]
        ranked = [(count_matches(query, one.name, one.description), one) for one in found]
        best = sorted((each for each in ranked if each[0]), key=lambda each: -each[0])
        return tuple(one for _, one in best[:limit])

    async def package(self, identifier: str) -> SkillPackage:
        repo, path, ref = split_identifier(identifier)
        branch, blobs = await self.tree(repo, ref)
        folder = self._folder(repo, path, blobs)
        inner = [blob for blob in blobs if blob.path.startswith(f"{folder}/" if folder else "")]
        _check(inner, repo)
        prefix = len(folder) + 1 if folder else 0
        slots = asyncio.Semaphore(AT_ONCE)

        async def fetch(blob: Blob) -> tuple[str, bytes]:
            async with slots:
                return blob.path[prefix:], await self.content(repo, branch, blob)

        files = dict(await asyncio.gather(*(fetch(blob) for blob in inner)))
        return SkillPackage(listing=self._listing(repo, folder, files[MAIN]), files=files)

    async def tree(self, repo: str, ref: str = "") -> tuple[str, tuple[Blob, ...]]:
        """Returns the branch and its blobs, cached."""
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
        """Returns a file, verified against its blob hash."""
        raw = self._web.url("github_raw")
        url = f"{raw}/{repo}/{quote(branch)}/{quote(blob.path)}"
        data = (await self._web.get(url)).body
        digest = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if blob.sha and digest != blob.sha:
            raise HermesError(f"{url} does not match the repository's hash; try again.")
        return data

    async def headers(self) -> dict[str, str]:
        token = await self._web.token()
        given = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
        return {**given, "authorization": f"Bearer {token}"} if token else given

    async def _all(self, tap: str) -> tuple[SkillListing, ...]:
        repo, path, ref = split_identifier(tap)
        branch, blobs = await self.tree(repo, ref)
        mains = [b for b in blobs if basename(b.path) == MAIN and b.path.startswith(path)]
        slots = asyncio.Semaphore(AT_ONCE)

        async def listed(blob: Blob) -> SkillListing | None:
            async with slots:
                try:
                    data = await self.content(repo, branch, blob)
                    return self._listing(repo, dirname(blob.path), data)
                except HermesError:
                    return None

        found = await asyncio.gather(*(listed(blob) for blob in mains))
        return tuple(one for one in found if one is not None)

    def _listing(self, repo: str, folder: str, main: bytes) -> SkillListing:
        skill, _ = parse_skill(main.decode("utf-8", "replace"))
        return SkillListing(
            source=self.id,
            identifier=f"{repo}/{folder}" if folder else repo,
            name=skill.name,
            description=skill.description,
            trust=repo_trust(repo),
            version=skill.version,
            url=f"https://github.com/{repo}/tree/HEAD/{folder}",
        )

    def _folder(self, repo: str, path: str, blobs: Sequence[Blob]) -> str:
        """Finds the skill's folder by path or by its last part."""
        folders = [dirname(blob.path) for blob in blobs if basename(blob.path) == MAIN]
        if path in folders:
            return path
        by_name = [each for each in folders if path and basename(each) == basename(path)]
        chosen = by_name or ([] if path else folders)
        if len(chosen) == 1:
            return chosen[0]
        near = tuple(f"{repo}/{each}" for each in (chosen or folders)[:5])
        words = "several skills; name one" if len(chosen) > 1 else f"no skill at {path!r}"
        raise NotFound(f"{repo} has {words}.", near=near)


def split_identifier(identifier: str) -> tuple[str, str, str]:
    """Splits `owner/repo/path` or a GitHub URL into repository, path and branch."""
    plain = after_prefix(identifier, "github") or identifier
    plain = re.sub(r"^(?:https?://)?(?:www\.)?github\.com/", "", plain).strip("/")
    parts = plain.split("/")
    if len(parts) < 2 or not all(parts[:2]):
        raise NotFound(f"{identifier!r} is not owner/repo/path.")
    repo, rest = "/".join(parts[:2]).removesuffix(".git"), parts[2:]
    ref = ""
    if rest[:1] in (["tree"], ["blob"]) and len(rest) > 1:
        ref, rest = rest[1], rest[2:]
    return repo, "/".join(rest).removesuffix(f"/{MAIN}").removesuffix(MAIN).strip("/"), ref


def _check(blobs: Sequence[Blob], repo: str) -> None:
    for blob in blobs:
        if blob.mode == _LINK:
            raise HermesError(f"{repo}: {blob.path} is a link; refused.")
        if blob.size > MOST_FILE_BYTES:
            raise HermesError(f"{repo}: {blob.path} is too large ({blob.size} bytes).")
    if len(blobs) > MOST_FILES or sum(blob.size for blob in blobs) > MOST_BYTES:
        raise HermesError(f"{repo}: the skill is too large ({len(blobs)} files).")
