"""HTTP access of the hub, through an injected fetch function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import HermesError, NotFound
from hermes.web.judged_http import HttpResponse

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
