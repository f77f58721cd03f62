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
from hermes.skills.discovery import SkillEntry, SkillRoot, SkillScanner
from hermes.skills.files import read_tree
from hermes.skills.hub.source import (
    IndexCache,
    SkillListing,
    SkillPackage,
    SkillSource,
    best_matches,
    decode_body,
    repo_trust,
)
from hermes.skills.hub.sources.github import Blob, GitHub, skill_folders, split_identifier

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


class Marketplace(SkillSource):
    id = "claude-marketplace"

    def __init__(self, github: GitHub, cache: IndexCache) -> None:
        self._github = github
        self._cache = cache

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        found: list[SkillListing] = []
        for repo in KNOWN:
            key = f"{self.id} {repo}"
            found += await self._cache.listings(key, partial(self._all, repo))
        return best_matches(query, found, limit)

    async def package(self, identifier: str) -> SkillPackage:
        """Fetch `owner/repo/skill` from one of the marketplace's plugins."""
        repo, wanted, _ = split_identifier(identifier)
        places = await self._skills(repo)
        location = next((each for each in places if basename(each[1]) == wanted), None)
        if location is None:
            near = tuple(f"{self.id}/{repo}/{basename(folder)}" for _, folder in places)[:5]
            raise NotFound(
                f"The marketplace {repo} has no skill {wanted!r}; check the name.", near=near
            )
        found = await self._github.package("/".join(location).rstrip("/"))
        listing = replace(found.listing, source=self.id, identifier=f"{self.id}/{repo}/{wanted}")
        return replace(found, listing=listing)

    async def _all(self, repo: str) -> tuple[SkillListing, ...]:
        return tuple(
            SkillListing(
                source=self.id,
                identifier=f"{self.id}/{repo}/{basename(folder)}",
                name=basename(folder),
                description=plugin.description or f"from the plugin {plugin.name}",
                trust=repo_trust(where),
                version=plugin.version,
                url=f"https://github.com/{where}",
            )
            for (where, folder), plugin in (await self._skills(repo)).items()
        )

    async def _skills(self, repo: str) -> dict[tuple[str, str], _Plugin]:
        """Return the plugin of every skill by repository and folder."""
        branch, blobs = await self._github.tree(repo)
        manifest = next((blob for blob in blobs if blob.path == MANIFEST), None)
        if manifest is None:
            raise NotFound(f"{repo} has no {MANIFEST}.")
        raw = await self._github.content(repo, branch, manifest)
        market = decode_body(_Marketplace, f"{repo}/{MANIFEST}", raw)
        plugins: dict[tuple[str, str], _Plugin] = {}
        for plugin in market.plugins:
            where, root = _plugin_location(repo, market.metadata.root, plugin)
            try:
                there = blobs if where == repo else (await self._github.tree(where))[1]
            except HermesError:
                continue
            for folder in _folders(root, plugin, there):
                plugins.setdefault((where, folder), plugin)
        return plugins


def _plugin_location(repo: str, root: str, plugin: _Plugin) -> tuple[str, str]:
    """Return repository and folder of a plugin."""
    match plugin.source:
        case str() as path:
            return repo, posixpath.normpath(posixpath.join(root, path)).removeprefix("./")
        case {"source": "github", "repo": str() as other}:
            return other, "."
        case {"source": "git-subdir" | "url", "url": str() as url} as source:
            return split_identifier(url)[0], str(source.get("path") or ".")
        case _:
            return repo, "."


def _folders(root: str, plugin: _Plugin, blobs: Sequence[Blob]) -> tuple[str, ...]:
    """Return the listed skills of a plugin, else those in its folder `skills`."""
    known = skill_folders(blobs)
    listed = (plugin.skills,) if isinstance(plugin.skills, str) else plugin.skills
    base = "" if root in (".", "") else f"{root}/"
    if not listed:
        return tuple(each for each in known if each.startswith(f"{base}skills/"))
    wanted = [posixpath.normpath(f"{base}{each}") for each in listed]
    return tuple(each for each in known if any(each == w or dirname(each) == w for w in wanted))


class Official(SkillSource):
    """The skills that Hermes ships. `folders` are searched in order; earlier ones shadow later
    ones."""

    id = "official"

    def __init__(self, folders: tuple[Path, ...], cache: Path) -> None:
        self._scan = SkillScanner(tuple(SkillRoot(path=str(each)) for each in folders), cache)

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        entries = self._scan.scan().entries
        tags = {entry.name: " ".join(entry.skill.tags) for entry in entries}
        return best_matches(query, map(self._listing, entries), limit, tags)

    async def package(self, identifier: str) -> SkillPackage:
        name = identifier.split("/")[-1]
        scanned = self._scan.scan()
        entry = scanned.find(name)
        if entry is None:
            near = tuple(each.name for each in scanned.entries)[:5]
            raise NotFound(f"Hermes ships no skill {name!r}; check the name.", near=near)
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
