"""Skill sources: URLs, archives and websites."""

from __future__ import annotations

import asyncio
import hashlib
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import IO
from urllib.parse import quote, urljoin, urlsplit

from hermes.codec.values import Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.skills.files import Tree, safe_member
from hermes.skills.hub.source import (
    HubClient,
    SkillListing,
    SkillPackage,
    SkillSource,
    best_matches,
    listing_of,
)
from hermes.skills.skill import MAIN, READABLE, check_name

MOST_FILES = 200
MOST_FILE_BYTES = 5 * 1024 * 1024
MOST_BYTES = 20 * 1024 * 1024
# What the archive modules raise for malformed data.
_UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
)


def unpack(data: bytes) -> Tree:
    """Return the files in the archive's skill folder. Raises HermesError for a malformed or
    malicious archive."""
    tree = _read_archive(data)
    mains = sorted((name for name in tree if name.split("/")[-1] == MAIN), key=len)
    if not mains:
        raise HermesError(f"The archive has no {MAIN}, so it is not a skill.")
    root = mains[0].removesuffix(MAIN)
    return {name[len(root) :]: data for name, data in tree.items() if name.startswith(root)}


def _read_archive(data: bytes) -> Tree:
    files: Tree = {}
    try:
        for name, file in _zip_members(data) if data[:2] == b"PK" else _tar_members(data):
            if file is None:
                raise HermesError(f"The archive contains a link ({name}); refused.")
            # Declared sizes may be false.
            content = file.read(MOST_FILE_BYTES + 1)
            files[_member(name)] = content
            size = sum(map(len, files.values()))
            if len(content) > MOST_FILE_BYTES or len(files) > MOST_FILES or size > MOST_BYTES:
                raise HermesError(f"The archive is too large: {len(files)} files, {size} bytes.")
    except _UNREADABLE as error:
        raise HermesError(f"The archive cannot be read ({error}); try again.") from error
    return files


Members = Iterator[tuple[str, IO[bytes] | None]]
"""Names and contents of the files in an archive; None for a link."""


def _zip_members(data: bytes) -> Members:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for each in archive.infolist():
            if not each.is_dir():
                is_link = stat.S_ISLNK(each.external_attr >> 16)
                yield each.filename, None if is_link else archive.open(each)


def _tar_members(data: bytes) -> Members:
    with tarfile.open(fileobj=BytesIO(data), mode="r:*") as archive:
        for each in archive:
            if not each.isdir():
                yield each.name, archive.extractfile(each) if each.isfile() else None


def _member(name: str) -> str:
    try:
        return safe_member(name.removeprefix("./"))
    except UsageError as error:
        raise HermesError(f"The archive contains an unsafe path ({name!r}); refused.") from error


MOST_REFERENCED = 50
_REFERENCE = re.compile(rf"(?<![\w/.])((?:{'|'.join(READABLE)})/[\w./-]*\w)")


class UrlSource(SkillSource):
    id = "url"

    def __init__(self, web: HubClient) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        parts = urlsplit(identifier)
        is_file = parts.path.endswith((".md", ".zip", ".tar.gz", ".tgz"))
        # GitHub URLs are HTML pages, not files.
        is_page = parts.hostname in ("github.com", "www.github.com")
        return parts.scheme in ("https", "http") and is_file and not is_page

    async def package(self, url: str) -> SkillPackage:
        data, notes = await self._web.get(url), []
        if urlsplit(url).path.endswith(".md"):
            files = {MAIN: data}
            for name in referenced_files(data.decode("utf-8", "replace")):
                try:
                    files[name] = await self._web.get(urljoin(url, name))
                except NotFound:
                    notes.append(f"{name} is referenced but missing.")
        else:
            files = unpack(data)
        listing = listing_of(files[MAIN], self.id, f"{self.id}:{url}", url=url)
        return SkillPackage(listing=listing, files=files, notes=tuple(notes))


def referenced_files(text: str) -> tuple[str, ...]:
    """Return the support files that a text references."""
    paths: dict[str, None] = {}
    for match in _REFERENCE.finditer(text):
        try:
            paths[safe_member(match[1])] = None
        except UsageError:
            continue
    return tuple(paths)[:MOST_REFERENCED]


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


class WellKnown(SkillSource):
    id = "well-known"

    def __init__(self, web: HubClient) -> None:
        self._web = web

    def claims(self, identifier: str) -> bool:
        is_url = identifier.startswith(("https://", "http://"))
        return is_url and not identifier.endswith((".md", ".zip", ".tar.gz", ".tgz"))

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        """Search only the site that the query names."""
        site = next((word for word in query.split() if "://" in word), "")
        if not site:
            return ()
        base, index = await self._index(site)
        rest = query.replace(site, "")
        return best_matches(rest, (self._listing(base, each) for each in index.skills), limit)

    async def package(self, identifier: str) -> SkillPackage:
        base, index = await self._index(identifier)
        # The skill's name in the URL, or "" for a site.
        path, wanted = urlsplit(identifier).path, ""
        for folder in PLACES:
            if path.startswith(folder):
                wanted = path.removeprefix(folder).split("/")[0].removesuffix("index.json")
        chosen = [each for each in index.skills if each.name == wanted]
        if not wanted and len(index.skills) == 1:
            chosen = list(index.skills)
        if not chosen:
            near = tuple(f"{base}{each.name}" for each in index.skills[:5])
            raise NotFound(f"{base} has no skill {wanted!r}; name one of its skills.", near=near)
        each = chosen[0]
        fetch = self._fetch_archive if each.url else self._fetch_files
        return SkillPackage(listing=self._listing(base, each), files=await fetch(base, each))

    async def _index(self, url: str) -> tuple[str, _Index]:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        site = f"{parts.scheme}://{parts.netloc}"
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
        return dict(zip(urls, found, strict=True))

    async def _fetch_archive(self, base: str, each: Published) -> dict[str, bytes]:
        url = urljoin(base, each.url)
        data = await self._web.get(url)
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
