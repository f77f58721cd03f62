"""Skill source: the skills.sh directory, whose skills are on GitHub."""

from __future__ import annotations

from posixpath import basename, dirname
from urllib.parse import urlencode

import msgspec

from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound
from hermes.skills.hub.listing import SkillListing, SkillPackage, after_prefix, repo_trust
from hermes.skills.hub.sources.github import GitHub
from hermes.skills.hub.web import HubClient
from hermes.skills.skill import MAIN


class _Skill(Value):
    name: str = ""
    skill_id: str = msgspec.field(name="skillId", default="")
    source: str = ""
    installs: int = 0


class _Found(Value):
    skills: tuple[_Skill, ...] = ()


class SkillsSh:
    id = "skills-sh"

    def __init__(self, web: HubClient, github: GitHub) -> None:
        self._web = web
        self._github = github

    def claims(self, identifier: str) -> bool:
        return bool(after_prefix(identifier, self.id)) or "skills.sh/" in identifier

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        base = self._web.url("skills_sh")
        if len(query) < 2:
            # The API returns nothing for shorter queries and cannot list everything.
            return ()
        asked = urlencode({"q": query, "limit": limit})
        found = await self._web.json(_Found, f"{base}/api/search?{asked}")
        return tuple(
            SkillListing(
                source=self.id,
                identifier=f"{self.id}/{each.source}/{each.skill_id or each.name}",
                name=each.skill_id or each.name,
                description=f"from {each.source}",
                trust=repo_trust(each.source),
                url=f"{base}/{each.source}/{each.skill_id or each.name}",
                installs=each.installs,
            )
            for each in found.skills[:limit]
            if each.source and (each.skill_id or each.name)
        )

    async def package(self, identifier: str) -> SkillPackage:
        plain = after_prefix(identifier, self.id) or identifier.partition("skills.sh/")[2]
        parts = plain.strip("/").split("/")
        if len(parts) < 3:
            raise NotFound(f"{identifier!r} is not skills-sh/owner/repo/skill.")
        repo, name = "/".join(parts[:2]), parts[-1]
        _, blobs = await self._github.tree(repo)
        folders = [dirname(blob.path) for blob in blobs if basename(blob.path) == MAIN]
        folder = next((each for each in folders if basename(each) == name), "")
        if not folder and folders != [""]:
            raise NotFound(f"{repo} no longer has a skill {name!r}.")
        found = await self._github.package(f"{repo}/{folder}" if folder else repo)
        listing = replace(found.listing, source=self.id, identifier=f"{self.id}/{repo}/{name}")
        return replace(found, listing=listing)
