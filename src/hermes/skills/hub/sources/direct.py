"""Skill source: a SKILL.md or an archive at any URL."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from hermes.core.errors import NotFound, UsageError
from hermes.skills.files import safe_member
from hermes.skills.hub.archives import unpacked
from hermes.skills.hub.listing import Listing, Package, after_prefix
from hermes.skills.hub.web import Web
from hermes.skills.skill import MAIN, READABLE, parse

MOST_REFERENCED = 50
_REFERENCE = re.compile(rf"(?<![\w/.])((?:{'|'.join(READABLE)})/[\w./-]*\w)")


class Direct:
    id = "url"

    def __init__(self, web: Web) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        plain = after_prefix(identifier, self.id) or identifier
        place = urlsplit(plain)
        is_file = place.path.endswith((".md", ".zip", ".tar.gz", ".tgz"))
        # GitHub URLs are HTML pages, not files.
        is_page = place.hostname in ("github.com", "www.github.com")
        return place.scheme in ("https", "http") and is_file and not is_page

    async def search(self, query: str, limit: int) -> tuple[Listing, ...]:
        return ()

    async def package(self, identifier: str) -> Package:
        url = after_prefix(identifier, self.id) or identifier
        data = (await self._web.get(url)).body
        if not urlsplit(url).path.endswith(".md"):
            return self._package(url, unpacked(data), ())
        files, notes = {MAIN: data}, []
        for name in referenced(data.decode("utf-8", "replace")):
            try:
                files[name] = (await self._web.get(urljoin(url, name))).body
            except NotFound:
                notes.append(f"{name} is referenced but missing.")
        return self._package(url, files, tuple(notes))

    def _package(self, url: str, files: dict[str, bytes], notes: tuple[str, ...]) -> Package:
        skill, _ = parse(files[MAIN].decode("utf-8", "replace"))
        listing = Listing(
            source=self.id,
            identifier=f"{self.id}:{url}",
            name=skill.name,
            description=skill.description,
            version=skill.version,
            url=url,
        )
        return Package(listing=listing, files=files, notes=notes)


def referenced(text: str) -> tuple[str, ...]:
    """Returns the support files that a text references."""
    found: dict[str, None] = {}
    for match in _REFERENCE.finditer(text):
        try:
            found[safe_member(match[1])] = None
        except UsageError:
            continue
    return tuple(found)[:MOST_REFERENCED]
