"""Skill sources: ClawHub, LobeHub and skills.sh."""

from __future__ import annotations

import re
from posixpath import basename
from urllib.parse import quote, urlencode

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.core.errors import HermesError, NotFound
from hermes.skills.hub.source import (
    HubClient,
    IndexCache,
    SkillListing,
    SkillPackage,
    SkillSource,
    best_matches,
    repo_trust,
)
from hermes.skills.hub.sources.github import GitHub, skill_folders
from hermes.skills.hub.sources.websites import unpack
from hermes.skills.skill import LONGEST_DESCRIPTION, LONGEST_NAME, MAIN


class _Hit(Value):
    slug: str
    display_name: str | None = msgspec.field(name="displayName", default=None)
    summary: str | None = None
    version: str | None = None


class _Page(Value):
    """One page of an answer. A search has results, a list has items."""

    results: tuple[_Hit, ...] = ()
    items: tuple[_Hit, ...] = ()


class _Latest(Value):
    version: str = ""


class _Moderation(Value):
    is_malware: bool = msgspec.field(name="isMalwareBlocked", default=False)
    is_suspicious: bool = msgspec.field(name="isSuspicious", default=False)
    summary: str | None = None


class _Owner(Value):
    handle: str | None = None


class _Detail(Value):
    skill: _Hit
    latest: _Latest | None = msgspec.field(name="latestVersion", default=None)
    owner: _Owner | None = None
    moderation: _Moderation | None = None


class ClawHub(SkillSource):
    id = "clawhub"

    def __init__(self, web: HubClient) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        return "clawhub.ai/" in identifier

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        api = f"{self._web.url('clawhub')}/api/v1"
        path, order = ("search", {"q": query}) if query else ("skills", {"sort": "downloads"})
        asked = urlencode({**order, "limit": limit, "nonSuspiciousOnly": "true"})
        page = await self._web.json(_Page, f"{api}/{path}?{asked}")
        hits = (*page.results, *page.items)[:limit]
        return tuple(self._listing(hit, hit.version or "") for hit in hits)

    async def package(self, identifier: str) -> SkillPackage:
        plain = identifier.rpartition("clawhub.ai/")[2]
        slug, _, version = plain.strip("/").split("/")[-1].partition("@")
        if not slug:
            raise NotFound(f"{identifier!r} is not a ClawHub skill; check the name.")
        api = f"{self._web.url('clawhub')}/api/v1"
        detail = await self._web.json(_Detail, f"{api}/skills/{quote(slug, safe='')}")
        state = detail.moderation
        if state is not None and state.is_malware:
            raise HermesError(f"ClawHub has blocked {slug} as malware.")
        version = version or (detail.latest.version if detail.latest else "")
        asked = {"slug": detail.skill.slug, **({"version": version} if version else {})}
        data = await self._web.get(f"{api}/download?{urlencode(asked)}")
        notes = ("ClawHub marks it as suspicious.",) if state and state.is_suspicious else ()
        listing = self._listing(detail.skill, version, detail.owner)
        return SkillPackage(listing=listing, files=unpack(data), notes=notes)

    def _listing(self, hit: _Hit, version: str, owner: _Owner | None = None) -> SkillListing:
        handle = f"{owner.handle}/" if owner and owner.handle else "skills/"
        return SkillListing(
            source=self.id,
            identifier=f"{self.id}/{hit.slug}",
            name=hit.slug,
            description=hit.summary or hit.display_name or "",
            version=version,
            url=f"{self._web.url('clawhub')}/{handle}{hit.slug}",
        )


class _Meta(Value):
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()


class _Config(Value):
    system_role: str = msgspec.field(name="systemRole", default="")


class _Agent(Value):
    identifier: str
    author: str = ""
    meta: _Meta = _Meta()
    config: _Config = _Config()


class _Index(Value):
    agents: tuple[_Agent, ...] = ()


class LobeHub(SkillSource):
    id = "lobehub"

    def __init__(self, web: HubClient, cache: IndexCache) -> None:
        self._web = web
        self._cache = cache

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        async def load() -> tuple[SkillListing, ...]:
            index = await self._web.json(_Index, f"{self._web.url('lobehub')}/index.json")
            return tuple(self._listing(agent) for agent in index.agents)

        return best_matches(query, await self._cache.listings("lobehub", load), limit)

    async def package(self, identifier: str) -> SkillPackage:
        url = f"{self._web.url('lobehub')}/{quote(identifier, safe='')}.json"
        agent = await self._web.json(_Agent, url)
        if not agent.config.system_role.strip():
            raise HermesError(f"{url} has no instructions, so it cannot become a skill.")
        files = {MAIN: _to_skill_md(agent).encode()}
        return SkillPackage(listing=self._listing(agent), files=files)

    def _listing(self, agent: _Agent) -> SkillListing:
        return SkillListing(
            source=self.id,
            identifier=f"{self.id}/{agent.identifier}",
            name=_name(agent.identifier),
            description=agent.meta.description or agent.meta.title,
            url=f"https://lobehub.com/agent/{agent.identifier}",
        )


def _name(identifier: str) -> str:
    plain = re.sub(r"[^a-z0-9._-]+", "-", identifier.lower()).strip("-._")
    return plain[:LONGEST_NAME] or "agent"


def _to_skill_md(agent: _Agent) -> str:
    about = " ".join((agent.meta.description or agent.meta.title or agent.identifier).split())
    tags = encode(agent.meta.tags).decode()
    head = (
        f"name: {_name(agent.identifier)}",
        f"description: {encode(about[:LONGEST_DESCRIPTION]).decode()}",
        f"author: {encode(agent.author or 'LobeHub').decode()}",
        "metadata:",
        "  hermes:",
        f"    tags: {tags}",
    )
    title = agent.meta.title or agent.identifier
    body = f"# {title}\n\n{agent.config.system_role.strip()}\n"
    return "\n".join(("---", *head, "---", "", body))


class _Skill(Value):
    name: str = ""
    skill_id: str = msgspec.field(name="skillId", default="")
    source: str = ""
    installs: int = 0


class _Found(Value):
    skills: tuple[_Skill, ...] = ()


class SkillsSh(SkillSource):
    id = "skills-sh"

    def __init__(self, web: HubClient, github: GitHub) -> None:
        self._web = web
        self._github = github

    def claims(self, identifier: str) -> bool:
        return "skills.sh/" in identifier

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        base = self._web.url("skills_sh")
        if len(query) < 2:
            # The API returns nothing for shorter queries and cannot list everything.
            return ()
        asked = urlencode({"q": query, "limit": limit})
        page = await self._web.json(_Found, f"{base}/api/search?{asked}")
        return tuple(
            SkillListing(
                source=self.id,
                identifier=f"{self.id}/{each.source}/{name}",
                name=name,
                description=f"from {each.source}",
                trust=repo_trust(each.source),
                url=f"{base}/{each.source}/{name}",
                installs=each.installs,
            )
            for each in page.skills[:limit]
            if each.source and (name := each.skill_id or each.name)
        )

    async def package(self, identifier: str) -> SkillPackage:
        parts = identifier.rpartition("skills.sh/")[2].strip("/").split("/")
        if len(parts) < 3:
            raise NotFound(f"{identifier!r} is unknown; write owner/repo/skill.")
        repo, name = "/".join(parts[:2]), parts[-1]
        _, blobs = await self._github.tree(repo)
        folders = skill_folders(blobs)
        folder = next((each for each in folders if basename(each) == name), "")
        if not folder and folders != [""]:
            raise NotFound(f"{repo} no longer has a skill {name!r}.")
        found = await self._github.package(f"{repo}/{folder}" if folder else repo)
        listing = replace(found.listing, source=self.id, identifier=f"{self.id}/{repo}/{name}")
        return replace(found, listing=listing)
