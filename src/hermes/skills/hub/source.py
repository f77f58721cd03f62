"""The interface of skill sources, their HTTP client and cache."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound
from hermes.core.world import Clock
from hermes.web.fetcher import HttpResponse

SourceTrust = Literal["builtin", "trusted", "community"]

TRUSTED_REPOS = frozenset(("openai/skills", "anthropics/skills", "huggingface/skills"))


class SkillListing(Value):
    """`identifier` is the argument of `install`; `url` is a page for people."""

    source: str
    identifier: str
    name: str
    description: str = ""
    trust: SourceTrust = "community"
    version: str = ""
    url: str = ""
    installs: int = 0


class SkillPackage(Value):
    """A downloaded skill, not yet checked."""

    listing: SkillListing
    files: dict[str, bytes]
    notes: tuple[str, ...] = ()


class SkillSource(Protocol):
    """A source of skills. Methods may raise NotFound and HermesError."""

    @property
    def id(self) -> str: ...

    def claims(self, identifier: str) -> bool:
        """Returns whether this source handles the identifier."""
        ...

    async def search(self, query: str, limit: int) -> tuple[SkillListing, ...]:
        """Returns the best matches first; an empty query lists everything."""
        ...

    async def package(self, identifier: str) -> SkillPackage: ...


def repo_trust(repo: str) -> SourceTrust:
    return "trusted" if repo.lower() in TRUSTED_REPOS else "community"


def after_prefix(identifier: str, source: str) -> str:
    """Strips `source:` or `source/`; "" for other identifiers."""
    for sign in (":", "/"):
        if identifier.startswith(f"{source}{sign}"):
            return identifier[len(source) + 1 :]
    return ""


def count_matches(query: str, *texts: str) -> int:
    """Returns how many query words occur in the texts; 1 for an empty query."""
    words = query.lower().split()
    whole = " ".join(texts).lower()
    return sum(word in whole for word in words) if words else 1


T = TypeVar("T")

Fetch = Callable[[str, Mapping[str, str], bytes | None], Awaitable[HttpResponse]]
"""Sends a GET, or a POST when there is a body. Follows redirects and checks every URL against
the policy."""


class HubClient:
    """`urls` override service URLs by name. `token` is the GitHub token, or ""."""

    def __init__(
        self,
        fetch: Fetch,
        *,
        urls: Mapping[str, str] | None = None,
        token: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._fetch = fetch
        self._urls = {**DEFAULT_URLS, **(urls or {})}
        self._token = token

    def url(self, service: str) -> str:
        return self._urls[service].rstrip("/")

    async def token(self) -> str:
        return await self._token() if self._token is not None else ""

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """Returns a successful response; NotFound, or HermesError in one sentence."""
        return _success(url, await self._fetch(url, headers or {}, None))

    async def post(self, url: str, headers: Mapping[str, str], body: JsonObject) -> HttpResponse:
        sent = {"content-type": "application/json", **headers}
        return _success(url, await self._fetch(url, sent, encode(body)))

    async def json(self, kind: type[T], url: str, headers: Mapping[str, str] | None = None) -> T:
        return decode_body(kind, url, (await self.get(url, headers)).body)


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
        raise HermesError(f"{url} sent an unexpected response ({error}).") from error


def _success(url: str, answer: HttpResponse) -> HttpResponse:
    if 200 <= answer.status < 300:
        return answer
    if answer.status in (404, 410):
        raise NotFound(f"{url} does not exist.")
    limited = answer.status == 429 or answer.headers.get("x-ratelimit-remaining") == "0"
    if limited:
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
