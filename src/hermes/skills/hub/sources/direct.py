"""Skill source: a SKILL.md or an archive at any URL."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from hermes.core.errors import NotFound, UsageError
from hermes.skills.files import safe_member
from hermes.skills.hub.archives import unpack
from hermes.skills.hub.listing import SkillListing, SkillPackage, after_prefix
from hermes.skills.hub.web import HubClient
from hermes.skills.skill import MAIN, READABLE, parse_skill

MOST_REFERENCED = 50
_REFERENCE = re.compile(rf"(?<![\w/.])((?:{'|'.join(READABLE)})/[\w./-]*\w)")


class UrlSource:
    id = "url"

    def __init__(self, web: HubClient) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        plain = after_prefix(identifier, self.id) or identifier
        place = urlsplit(plain)
        is_file = place.path.endswith((".md", ".zip", ".tar.gz", ".tgz"))
        # GitHub URLs are HTML pages, not files.
        is_page = place.hostname in ("github.com", "www.github.com")
        return place.scheme in ("https", "http") and is_file and not is_page

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        return ()

    async def package(self, identifier: str) -> SkillPackage:
        url = after_prefix(identifier, self.id) or identifier
        data = (await self._web.get(url)).body
        if not urlsplit(url).path.endswith(".md"):
            return self._package(url, unpack(data), ())
        files, notes = {MAIN: data}, []
        for name in referenced_files(data.decode("utf-8", "replace")):
            try:
                files[name] = (await self._web.get(urljoin(url, name))).body
            except NotFound:
                notes.append(f"{name} is referenced but missing.")
        return self._package(url, files, tuple(notes))

    def _package(self, url: str, files: dict[str, bytes], notes: tuple[str, ...]) -> SkillPackage:
        skill, _ = parse_skill(files[MAIN].decode("utf-8", "replace"))
        listing = SkillListing(
            source=self.id,
            identifier=f"{self.id}:{url}",
            name=skill.name,
            description=skill.description,
            version=skill.version,
            url=url,
        )
        return SkillPackage(listing=listing, files=files, notes=notes)


def referenced_files(text: str) -> tuple[str, ...]:
    """Returns the support files that a text references."""
    found: dict[str, None] = {}
    for match in _REFERENCE.finditer(text):
        try:
            found[safe_member(match[1])] = None
        except UsageError:
            continue
    return tuple(found)[:MOST_REFERENCED]
