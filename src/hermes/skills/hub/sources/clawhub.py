"""Skill source: the ClawHub registry."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import msgspec

from hermes.codec.values import Value
from hermes.core.errors import HermesError, NotFound
from hermes.skills.hub.archives import unpack
from hermes.skills.hub.listing import SkillListing, SkillPackage, after_prefix
from hermes.skills.hub.web import HubClient


class _Hit(Value):
    slug: str
    display_name: str | None = msgspec.field(name="displayName", default=None)
    summary: str | None = None
    version: str | None = None


class _Hits(Value):
    results: tuple[_Hit, ...] = ()


class _Page(Value):
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


class ClawHub:
    id = "clawhub"

    def __init__(self, web: HubClient) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        return bool(after_prefix(identifier, self.id)) or "clawhub.ai/" in identifier

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        api = f"{self._web.url('clawhub')}/api/v1"
        if query:
            asked = urlencode({"q": query, "limit": limit, "nonSuspiciousOnly": "true"})
            hits = (await self._web.json(_Hits, f"{api}/search?{asked}")).results
        else:
            asked = urlencode({"limit": limit, "sort": "downloads", "nonSuspiciousOnly": "true"})
            hits = (await self._web.json(_Page, f"{api}/skills?{asked}")).items
        return tuple(self._listing(hit, hit.version or "") for hit in hits[:limit])

    async def package(self, identifier: str) -> SkillPackage:
        plain = after_prefix(identifier, self.id) or identifier.partition("clawhub.ai/")[2]
        slug, _, version = plain.strip("/").split("/")[-1].partition("@")
        if not slug:
            raise NotFound(f"{identifier!r} does not name a ClawHub skill.")
        api = f"{self._web.url('clawhub')}/api/v1"
        detail = await self._web.json(_Detail, f"{api}/skills/{quote(slug, safe='')}")
        state = detail.moderation
        if state is not None and state.is_malware:
            raise HermesError(f"ClawHub has blocked {slug} as malware.")
        version = version or (detail.latest.version if detail.latest else "")
        asked = {"slug": detail.skill.slug, **({"version": version} if version else {})}
        data = (await self._web.get(f"{api}/download?{urlencode(asked)}")).body
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
