"""HTTP client for the Honcho API, version 3."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import HermesError
from hermes.memory.honcho.settings import Level

T = TypeVar("T")

RETRIED = (429, 500, 502, 503, 504)
ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.5
MOST_MESSAGES = 100
PAGE = 50


class HonchoError(HermesError):
    """A failed request to Honcho. `status` is the HTTP status, 0 when the server could not be
    reached."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class HonchoResponse(Value):
    status: int
    body: bytes
    retry_after: float = 0.0


Fetch = Callable[[str, str, Mapping[str, str], bytes], Awaitable[HonchoResponse]]
"""Sends method, URL, headers and body; HermesError when the server cannot be reached."""


class PeerContext(Value):
    representation: str | None = None
    peer_card: tuple[str, ...] | None = None

    @property
    def text(self) -> str:
        lines = (f"- {line}" for line in self.peer_card or ())
        return "\n".join((*lines, self.representation or "")).strip()


class Conclusion(Value):
    id: str
    content: str


class HonchoClient:
    """A client for one workspace. Missing objects are created on first use."""

    def __init__(self, fetch: Fetch, url: str, key: str, workspace: str) -> None:
        self._fetch = fetch
        self._url = url
        self._key = key
        self._workspace = workspace
        self._root = f"/v3/workspaces/{quote(workspace, safe='')}"

    async def ensure(self, peers: Sequence[str]) -> None:
        await self._call("POST", "/v3/workspaces", {"id": self._workspace})
        for peer in peers:
            await self._call("POST", f"{self._root}/peers", {"id": peer})

    async def ensure_session(self, session: str, peers: Mapping[str, JsonObject]) -> None:
        await self._call("POST", f"{self._root}/sessions", {"id": session, "peers": dict(peers)})

    async def add_messages(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        """Add (peer, text) pairs in order."""
        path = f"{self._root}/sessions/{quote(session, safe='')}/messages"
        for start in range(0, len(messages), MOST_MESSAGES):
            some = messages[start : start + MOST_MESSAGES]
            body = {"messages": [{"peer_id": peer, "content": text} for peer, text in some]}
            await self._call("POST", path, body)

    async def context(self, peer: str, *, target: str = "", query: str = "") -> PeerContext:
        options = {"target": target, "search_query": query}
        found = await self._call("GET", self._peer(peer, "context"), query=options)
        return _convert(PeerContext, found)

    async def card(self, peer: str, *, target: str = "") -> tuple[str, ...]:
        found = await self._call("GET", self._peer(peer, "card"), query={"target": target})
        return _convert(PeerContext, found).peer_card or ()

    async def set_card(
        self, peer: str, lines: Sequence[str], *, target: str = ""
    ) -> tuple[str, ...]:
        body, query = {"peer_card": list(lines)}, {"target": target}
        found = await self._call("PUT", self._peer(peer, "card"), body, query=query)
        return _convert(PeerContext, found).peer_card or ()

    async def chat(
        self, peer: str, question: str, *, level: Level, target: str = "", session: str = ""
    ) -> str:
        """Ask the dialectic endpoint a question about a peer."""
        body: JsonObject = {"query": question, "stream": False, "reasoning_level": level}
        body |= {"target": target} if target else {}
        body |= {"session_id": session} if session else {}
        found = await self._call("POST", self._peer(peer, "chat"), body)
        return str((found or {}).get("content") or "")

    async def search(self, peer: str, query: str, *, limit: int = 10) -> tuple[str, ...]:
        """Search the messages of a peer, best match first."""
        body = {"query": query, "limit": limit}
        found = await self._call("POST", self._peer(peer, "search"), body)
        return tuple(str(each.get("content", "")) for each in found or ())

    async def conclude(self, observer: str, observed: str, text: str) -> tuple[Conclusion, ...]:
        one = {"observer_id": observer, "observed_id": observed, "content": text}
        found = await self._call("POST", f"{self._root}/conclusions", {"conclusions": [one]})
        return _convert(tuple[Conclusion, ...], found)

    async def conclusions(self, observer: str, observed: str) -> tuple[Conclusion, ...]:
        filters = {"filters": {"observer_id": observer, "observed_id": observed}}
        every: list[Conclusion] = []
        page, pages = 1, 1
        while page <= pages:
            query = {"page": str(page), "size": str(PAGE)}
            found = await self._call("POST", f"{self._root}/conclusions/list", filters, query=query)
            every += _convert(tuple[Conclusion, ...], (found or {}).get("items", []))
            pages = int((found or {}).get("pages", 1))
            page += 1
        return tuple(every)

    async def drop_conclusion(self, id: str) -> None:
        await self._call("DELETE", f"{self._root}/conclusions/{quote(id, safe='')}")

    def _peer(self, peer: str, what: str) -> str:
        return f"{self._root}/peers/{quote(peer, safe='')}/{what}"

    async def _call(
        self,
        method: str,
        path: str,
        body: JsonValue = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> JsonValue:
        parameters = urlencode({name: value for name, value in (query or {}).items() if value})
        url = f"{self._url}{path}{'?' + parameters if parameters else ''}"
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        raw = b"" if body is None else encode(body)
        for attempt in range(ATTEMPTS):
            answer = await self._fetch(method, url, headers, raw)
            if answer.status not in RETRIED or attempt == ATTEMPTS - 1:
                break
            await asyncio.sleep(answer.retry_after or FIRST_WAIT_SECONDS * 2**attempt)
        status = answer.status
        if status in (401, 403):
            raise HonchoError("Honcho rejected the key; set HONCHO_API_KEY.", status)
        try:
            content = decode(object, answer.body) if answer.body.strip() else None
        except DecodeError as error:
            text = f"Honcho answered {path} with status {status} and no JSON."
            raise HonchoError(text, status) from error
        if status >= 400:
            why = (
                content.get("detail") or content.get("message") if isinstance(content, dict) else ""
            )
            raise HonchoError(f"Honcho refused {path}: {why or status}.", status)
        return content


def _convert(kind: type[T], raw: JsonValue) -> T:
    try:
        return convert(kind, raw if raw is not None else {})
    except DecodeError as error:
        raise HonchoError(f"Honcho sent an unexpected response: {error}.") from error
