"""The interface of skill sources, their HTTP client and cache."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound
from hermes.core.world import Clock
from hermes.skills.skill import parse_skill

if TYPE_CHECKING:
    from hermes.core.ports import FetchResponse

SourceTrust = Literal["builtin", "trusted", "community"]

TRUSTED_REPOS = ("openai/skills", "anthropics/skills", "huggingface/skills")


class SkillListing(Value):
    """A skill that a source offers."""

    source: str
    # The argument of `install`.
    identifier: str
    name: str
    description: str = ""
    trust: SourceTrust = "community"
    version: str = ""
    # A page for people.
    url: str = ""
    installs: int = 0


class SkillPackage(Value):
    """A downloaded skill, not yet checked."""

    listing: SkillListing
    files: dict[str, bytes]
    notes: tuple[str, ...] = ()


class SkillSource:
    """A source of skills, which gets identifiers that begin with its `id`, without that prefix.
    Methods may raise NotFound and HermesError."""

    id = ""

    def claims(self, identifier: str) -> bool:
        """Return whether an identifier without a prefix belongs to this source."""
        return False

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        """Return the best matches first; an empty query lists everything."""
        return ()

    async def package(self, identifier: str) -> SkillPackage:
        raise NotImplementedError


def listing_of(main: bytes, source: str, identifier: str, **more: Any) -> SkillListing:
    """Return the listing of a SKILL.md. Raises UsageError if that is invalid."""
    skill, _ = parse_skill(main.decode("utf-8", "replace"))
    return SkillListing(
        source=source,
        identifier=identifier,
        name=skill.name,
        description=skill.description,
        version=skill.version,
        **more,
    )


def repo_trust(repo: str) -> SourceTrust:
    return "trusted" if repo.lower() in TRUSTED_REPOS else "community"


def after_prefix(identifier: str, source: str) -> str:
    """Strip `source:` or `source/`; "" for other identifiers."""
    for sign in (":", "/"):
        if identifier.startswith(f"{source}{sign}"):
            return identifier[len(source) + 1 :]
    return ""


T = TypeVar("T")


def best_matches(
    query: str, listings: Iterable[SkillListing], limit: int, more: Mapping[str, str] | None = None
) -> tuple[SkillListing, ...]:
    """Return the listings with most query words in name and description, best first; all match an
    empty query. `more` has further text by name."""
    words = query.lower().split()
    ranked: list[tuple[int, SkillListing]] = []
    for one in listings:
        text = f"{one.name} {one.description} {more.get(one.name, '') if more else ''}".lower()
        ranked.append((sum(word in text for word in words), one))
    best = sorted((each for each in ranked if each[0] or not words), key=lambda each: -each[0])
    return tuple(one for _, one in best[:limit])


Fetch = Callable[[str, Mapping[str, str], bytes | None], Awaitable["FetchResponse"]]
"""Sends a GET, or a POST when there is a body. Follows redirects and checks every URL against
the policy."""


class HubClient:
    """An HTTP client for skill sources. `urls` override service URLs by name; `token` is the GitHub
    token, or ""."""

    def __init__(
        self,
        fetch: Fetch,
        *,
        urls: Mapping[str, str],
        token: Callable[[], Awaitable[str]],
    ) -> None:
        self.token = token
        self._fetch = fetch
        self._urls = {**DEFAULT_URLS, **urls}

    def url(self, service: str) -> str:
        return self._urls[service].rstrip("/")

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> bytes:
        """Return the body of a page. Raises NotFound, or HermesError in one sentence."""
        return _success(url, await self._fetch(url, headers or {}, None))

    async def post(
        self, kind: type[T], url: str, headers: Mapping[str, str], body: JsonObject
    ) -> T:
        sent = {"content-type": "application/json", **headers}
        return decode_body(kind, url, _success(url, await self._fetch(url, sent, encode(body))))

    async def json(self, kind: type[T], url: str, headers: Mapping[str, str] | None = None) -> T:
        return decode_body(kind, url, await self.get(url, headers))


DEFAULT_URLS = {
    "github_api": "https://api.github.com",
    "github_raw": "https://raw.githubusercontent.com",
    "skills_sh": "https://skills.sh",
    "clawhub": "https://clawhub.ai",
    "lobehub": "https://chat-agents.lobehub.com",
}


def decode_body(kind: type[T], url: str, body: bytes) -> T:
    try:
        return decode(kind, body)
    except DecodeError as error:
        raise HermesError(f"{url} sent an unexpected response ({error}); try again.") from error


def _success(url: str, answer: FetchResponse) -> bytes:
    if 200 <= answer.status < 300:
        return answer.body
    if answer.status in (404, 410):
        raise NotFound(f"{url} does not exist; check the address.")
    if answer.status == 429 or answer.headers.get("x-ratelimit-remaining") == "0":
        wait = answer.headers.get("retry-after", "")
        when = f"in {wait} seconds" if wait else "later"
        raise HermesError(f"{url} limits the request rate; try again {when}.")
    if answer.status in (401, 403):
        raise HermesError(f"{url} refuses the request (status {answer.status}); check the token.")
    raise HermesError(f"{url} answered with status {answer.status}; try again later.")


SECONDS = 3600.0


class _CachedListings(Value):
    at: float
    listings: tuple[SkillListing, ...]


class IndexCache:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    async def listings(
        self, key: str, make: Callable[[], Awaitable[tuple[SkillListing, ...]]]
    ) -> tuple[SkillListing, ...]:
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        now = self._clock.now()
        try:
            cached = decode(_CachedListings, path.read_bytes())
            if 0 <= now - cached.at < SECONDS:
                return cached.listings
        except (OSError, DecodeError):
            pass
        found = await make()
        replace_file(path, encode(_CachedListings(at=now, listings=found)), durable=False)
        return found
