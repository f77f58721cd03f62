"""Skill sources: Claude marketplaces and optional skills shipped with Hermes."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from posixpath import basename, dirname

import msgspec

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import HermesError, NotFound
from hermes.skills.catalogue import SkillEntry, SkillRoot, SkillScanner
from hermes.skills.files import read_tree
from hermes.skills.hub.source import (
    IndexCache,
    SkillListing,
    SkillPackage,
    after_prefix,
    count_matches,
    decode_body,
    repo_trust,
)
from hermes.skills.hub.sources.github import Blob, GitHub, split_identifier
from hermes.skills.skill import MAIN

MANIFEST = ".claude-plugin/marketplace.json"
KNOWN = ("anthropics/skills",)


class _Plugin(Value):
    name: str
    description: str = ""
    version: str = ""
    source: str | JsonObject = "./"
    skills: tuple[str, ...] | str = ()


class _Metadata(Value):
    root: str = msgspec.field(name="pluginRoot", default="")


class _Marketplace(Value):
    name: str = ""
    metadata: _Metadata = _Metadata()
    plugins: tuple[_Plugin, ...] = ()


class Marketplace:
    """`repos` are searched."""

    id = "claude-marketplace"

    def __init__(self, github: GitHub, cache: IndexCache, repos: Sequence[str] = KNOWN) -> None:
        self._github = github
        self._cache = cache
        self._repos = repos

    def claims(self, identifier: str) -> bool:
        return bool(after_prefix(identifier, self.id))

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        found: list[SkillListing] = []
        for repo in self._repos:
            key = f"{self.id} {repo}"
            found += await self._cache.listings(key, partial(self._all, repo))
        ranked = [(count_matches(query, one.name, one.description), one) for one in found]
        best = sorted((each for each in ranked if each[0]), key=lambda each: -each[0])
        return tuple(one for _, one in best[:limit])

    async def package(self, identifier: str) -> SkillPackage:
        """Fetches `owner/repo/skill` from one of the marketplace's plugins."""
        repo, wanted, _ = split_identifier(after_prefix(identifier, self.id))
        listed = dict(await self._skills(repo))
        place = next((each for each in listed if basename(each.partition(":")[2]) == wanted), "")
        if not place:
            near = tuple(f"{self.id}/{repo}/{basename(each)}" for each in listed)[:5]
            raise NotFound(f"The marketplace {repo} has no skill {wanted!r}.", near=near)
        where, _, folder = place.partition(":")
        found = await self._github.package(f"{where}/{folder}" if folder else where)
        listing = replace(found.listing, source=self.id, identifier=f"{self.id}/{repo}/{wanted}")
        return replace(found, listing=listing)

    async def _all(self, repo: str) -> tuple[SkillListing, ...]:
        return tuple(
            SkillListing(
                source=self.id,
                identifier=f"{self.id}/{repo}/{basename(place.partition(':')[2])}",
                name=basename(place.partition(":")[2]),
                description=plugin.description or f"from the plugin {plugin.name}",
                trust=repo_trust(place.partition(":")[0]),
                version=plugin.version,
                url=f"https://github.com/{place.partition(':')[0]}",
            )
            for place, plugin in await self._skills(repo)
        )

    async def _skills(self, repo: str) -> tuple[tuple[str, _Plugin], ...]:
        """Returns `repo:folder` and plugin of every skill."""
        branch, blobs = await self._github.tree(repo)
        manifest = next((blob for blob in blobs if blob.path == MANIFEST), None)
        if manifest is None:
            raise NotFound(f"{repo} has no {MANIFEST}.")
        raw = await self._github.content(repo, branch, manifest)
        market = decode_body(_Marketplace, f"{repo}/{MANIFEST}", raw)
        found: dict[str, _Plugin] = {}
        for plugin in market.plugins:
            where, root = _plugin_location(repo, market.metadata.root, plugin)
            try:
                there = blobs if where == repo else (await self._github.tree(where))[1]
            except HermesError:
                continue
            for folder in _folders(root, plugin, there):
                found.setdefault(f"{where}:{folder}", plugin)
        return tuple(found.items())


def _plugin_location(repo: str, root: str, plugin: _Plugin) -> tuple[str, str]:
    """Returns repository and folder of a plugin."""
    match plugin.source:
        case str() as path:
            return repo, posixpath.normpath(posixpath.join(root, path)).removeprefix("./")
        case {"source": "github", "repo": str() as other}:
            return other, "."
        case {"source": "git-subdir" | "url", "url": str() as url} as given:
            return split_identifier(url)[0], str(given.get("path") or ".")
        case _:
            return repo, "."


def _folders(root: str, plugin: _Plugin, blobs: Sequence[Blob]) -> tuple[str, ...]:
    """Returns the listed skills of a plugin, else those in its folder `skills`."""
    known = [dirname(blob.path) for blob in blobs if basename(blob.path) == MAIN]
    given = (plugin.skills,) if isinstance(plugin.skills, str) else plugin.skills
    base = "" if root in (".", "") else f"{root}/"
    if not given:
        return tuple(each for each in known if each.startswith(f"{base}skills/"))
    wanted = [posixpath.normpath(f"{base}{each}") for each in given]
    return tuple(each for each in known if any(each == w or dirname(each) == w for w in wanted))


class Official:
    """`folders` are searched in order; earlier ones shadow later ones."""

    id = "official"

    def __init__(self, folders: tuple[Path, ...], cache: Path) -> None:
        self._scan = SkillScanner(tuple(SkillRoot(path=str(each)) for each in folders), cache)

    def claims(self, identifier: str) -> bool:
        return bool(after_prefix(identifier, self.id))

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        ranked = [
            (count_matches(query, entry.name, entry.skill.description, *entry.skill.tags), entry)
            for entry in self._scan.scan().entries
        ]
        best = sorted((each for each in ranked if each[0]), key=lambda each: -each[0])
        return tuple(self._listing(entry) for _, entry in best[:limit])

    async def package(self, identifier: str) -> SkillPackage:
        name = after_prefix(identifier, self.id).split("/")[-1]
        entry = self._scan.scan().find(name)
        if entry is None:
            near = tuple(each.name for each in self._scan.scan().entries)[:5]
            raise NotFound(f"Hermes ships no skill {name!r}.", near=near)
        return SkillPackage(listing=self._listing(entry), files=read_tree(Path(entry.folder)))

    def _listing(self, entry: SkillEntry) -> SkillListing:
        return SkillListing(
            source=self.id,
            identifier=f"{self.id}/{entry.category}/{entry.name}",
            name=entry.name,
            description=entry.skill.description,
            trust="builtin",
            version=entry.skill.version,
        )
