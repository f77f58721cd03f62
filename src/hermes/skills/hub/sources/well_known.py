"""Skill source: websites that publish skills at a well-known URL."""

from __future__ import annotations

import asyncio
import hashlib
from urllib.parse import quote, urljoin, urlsplit

from hermes.codec.values import Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.skills.files import safe_member
from hermes.skills.hub.archives import MOST_FILES, unpack
from hermes.skills.hub.listing import SkillListing, SkillPackage, after_prefix, count_matches
from hermes.skills.hub.web import HubClient
from hermes.skills.skill import MAIN, check_name

# The newer convention gives a URL and a digest per skill, the older one a list of files.
PLACES = ("/.well-known/agent-skills/", "/.well-known/skills/")


class Published(Value):
    name: str
    description: str = ""
    files: tuple[str, ...] = ()
    type: str = ""
    url: str = ""
    digest: str = ""


class _Index(Value):
    skills: tuple[Published, ...] = ()


class WellKnown:
    id = "well-known"

    def __init__(self, web: HubClient) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        if after_prefix(identifier, self.id):
            return True
        is_url = identifier.startswith(("https://", "http://"))
        return is_url and not identifier.endswith((".md", ".zip", ".tar.gz", ".tgz"))

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        """Searches only the site that the query names."""
        site = next((word for word in query.split() if "://" in word), "")
        if not site:
            return ()
        base, index = await self._index(site)
        words = query.replace(site, "")
        return tuple(
            self._listing(base, each)
            for each in index.skills
            if count_matches(words, each.name, each.description)
        )[:limit]

    async def package(self, identifier: str) -> SkillPackage:
        plain = after_prefix(identifier, self.id) or identifier
        base, index = await self._index(plain)
        wanted = _skill_name(plain)
        chosen = [each for each in index.skills if each.name == wanted]
        if not wanted and len(index.skills) == 1:
            chosen = list(index.skills)
        if not chosen:
            near = tuple(f"{base}{each.name}" for each in index.skills[:5])
            raise NotFound(f"{base} has no skill {wanted!r}; name one of its skills.", near=near)
        each = chosen[0]
        files = await (
            self._fetch_archive(base, each) if each.url else self._fetch_files(base, each)
        )
        return SkillPackage(listing=self._listing(base, each), files=files)

    async def _index(self, url: str) -> tuple[str, _Index]:
        place = urlsplit(url if "://" in url else f"https://{url}")
        site = f"{place.scheme}://{place.netloc}"
        for folder in PLACES:
            try:
                return site + folder, await self._web.json(_Index, f"{site}{folder}index.json")
            except NotFound:
                continue
        raise NotFound(f"{site} publishes no skills.")

    async def _fetch_files(self, base: str, each: Published) -> dict[str, bytes]:
        names = list(dict.fromkeys((MAIN, *each.files)))
        if len(names) > MOST_FILES:
            raise HermesError(f"{base}{each.name} has too many files ({len(names)}).")
        try:
            urls = {n: f"{base}{check_name(each.name)}/{quote(safe_member(n))}" for n in names}
        except UsageError as error:
            raise HermesError(f"{base} lists an invalid file: {error}") from error
        found = await asyncio.gather(*(self._web.get(url) for url in urls.values()))
        return {name: answer.body for name, answer in zip(urls, found, strict=True)}

    async def _fetch_archive(self, base: str, each: Published) -> dict[str, bytes]:
        url = urljoin(base, each.url)
        data = (await self._web.get(url)).body
        kind, _, digest = each.digest.partition(":")
        if kind != "sha256" or hashlib.sha256(data).hexdigest() != digest.lower():
            raise HermesError(f"{url} does not match the digest in {base}index.json; refused.")
        return unpack(data) if each.type == "archive" else {MAIN: data}

    def _listing(self, base: str, each: Published) -> SkillListing:
        return SkillListing(
            source=self.id,
            identifier=f"{self.id}:{base}{each.name}",
            name=each.name,
            description=each.description,
            url=f"{base}{each.name}/{MAIN}",
        )


def _skill_name(url: str) -> str:
    """Returns the skill's name in a URL, or "" for a site."""
    path = urlsplit(url).path
    for folder in PLACES:
        if path.startswith(folder):
            return path.removeprefix(folder).split("/")[0].removesuffix("index.json")
    return ""
