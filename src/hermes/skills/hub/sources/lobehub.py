"""Skill source: LobeHub assistants, converted to skills."""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.core.errors import HermesError
from hermes.skills.hub.cache import IndexCache
from hermes.skills.hub.listing import SkillListing, SkillPackage, after_prefix, count_matches
from hermes.skills.hub.web import HubClient
from hermes.skills.skill import LONGEST_DESCRIPTION, LONGEST_NAME, MAIN


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


class LobeHub:
    id = "lobehub"

    def __init__(self, web: HubClient, cache: IndexCache) -> None:
        self._web = web
        self._cache = cache

    def claims(self, identifier: str) -> bool:
        return bool(after_prefix(identifier, self.id))

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        found = await self._cache.listings("lobehub", self._all)
        ranked = [(count_matches(query, one.name, one.description), one) for one in found]
        best = sorted((each for each in ranked if each[0]), key=lambda each: -each[0])
        return tuple(one for _, one in best[:limit])

    async def package(self, identifier: str) -> SkillPackage:
        slug = after_prefix(identifier, self.id)
        url = f"{self._web.url('lobehub')}/{quote(slug, safe='')}.json"
        agent = await self._web.json(_Agent, url)
        if not agent.config.system_role.strip():
            raise HermesError(f"{url} has no instruction to convert.")
        return SkillPackage(
            listing=self._listing(agent), files={MAIN: _to_skill_md(agent).encode()}
        )

    async def _all(self) -> tuple[SkillListing, ...]:
        index = await self._web.json(_Index, f"{self._web.url('lobehub')}/index.json")
        return tuple(self._listing(agent) for agent in index.agents)

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
    words = " ".join((agent.meta.description or agent.meta.title or agent.identifier).split())
    tags = ", ".join(encode(tag).decode() for tag in agent.meta.tags)
    head = (
        f"name: {_name(agent.identifier)}",
        f"description: {encode(words[:LONGEST_DESCRIPTION]).decode()}",
        f"author: {encode(agent.author or 'LobeHub').decode()}",
        "metadata:",
        "  hermes:",
        f"    tags: [{tags}]",
    )
    title = agent.meta.title or agent.identifier
    body = f"# {title}\n\n{agent.config.system_role.strip()}\n"
    return "\n".join(("---", *head, "---", "", body))
