"""Search services behind HTTP: requests and answers are described in services.toml."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

from hermes.codec.json import DecodeError, convert, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import ProviderError, ToolError
from hermes.core.tools import ToolContext
from hermes.net.http import HttpClient, Timeouts
from hermes.policy.outgoing import host_of
from hermes.web.provider import SearchHit, WebPage

SERVICES = Path(__file__).with_name("services.toml")
MOST_BYTES = 20_000_000
MOST_DESCRIPTION = 1_000
NO_TEXT = "the service returned no text."
TIMEOUTS = Timeouts(connect=10, read=60)
_TAG = re.compile(r"<[^>]{1,200}>")


class ServiceCall(Value):
    """One kind of request: what is sent, and where the results are in the answer."""

    path: str
    items: str
    fields: dict[str, str]
    body: JsonObject = {}
    query: dict[str, str] = {}
    failures: str = ""


class SearchService(Value):
    """A service. A key is read from the variable `key`, another address from `url_variable`."""

    url: str
    search: ServiceCall
    extract: ServiceCall | None = None
    key: str = ""
    url_variable: str = ""
    auth: str = ""
    headers: dict[str, str] = {}
    # The most results of one search.
    most: int = 100


@cache
def search_services() -> dict[str, SearchService]:
    """Return the services by name, in the order in which they are chosen."""
    return convert(dict[str, SearchService], tomllib.loads(SERVICES.read_text("utf-8")))


class HttpSearch:
    """A `WebProvider` that asks a service. `secret` returns the value of a variable."""

    def __init__(
        self, name: str, service: SearchService, http: HttpClient, secret: Callable[[str], str]
    ) -> None:
        self._name = name
        self._service = service
        self._http = http
        self._key = secret(service.key) if service.key else ""
        self._url = (secret(service.url_variable) if service.url_variable else "") or service.url
        self.recipient = host_of(self._url)
        self.origin = f"web:{self.recipient}"

    async def search(self, ctx: ToolContext, query: str, limit: int) -> Sequence[SearchHit]:
        call, most = self._service.search, min(limit, self._service.most)
        answer = await self._request(call, {"$query": query, "$limit": most})
        found = [_fields(item, call.fields) for item in _items(answer, call.items)]
        hits = [each for each in found if each["url"]]
        return [
            SearchHit(
                url=each["url"],
                title=_plain(each.get("title", "")),
                description=_plain(each.get("description", ""))[:MOST_DESCRIPTION],
                position=position,
            )
            for position, each in enumerate(hits[:limit], 1)
        ]

    async def extract(self, ctx: ToolContext, urls: Sequence[str]) -> Sequence[WebPage]:
        call = self._service.extract
        if call is None:
            raise ToolError(f"{self._name} cannot read pages.")
        if "$url" in call.body.values():
            return await asyncio.gather(*(self._extract_one(call, url) for url in urls))
        answer = await self._request(call, {"$urls": list(urls)})
        pages = {page.url: page for page in _pages(answer, call)}
        return [pages.get(url) or _failed_page(answer, call, url) for url in urls]

    async def _extract_one(self, call: ServiceCall, url: str) -> WebPage:
        try:
            answer = await self._request(call, {"$url": url})
        except ToolError as error:
            return WebPage(url=url, error=str(error))
        item = _find(answer, call.items)
        found = _fields(item, call.fields) if isinstance(item, dict) else {}
        content = found.get("content", "")
        if not content:
            return WebPage(url=url, error=NO_TEXT)
        return WebPage(url=url, title=found.get("title", ""), content=content)

    async def _request(self, call: ServiceCall, values: Mapping[str, JsonValue]) -> JsonValue:
        url = self._url.rstrip("/") + call.path
        if call.query:
            url += "?" + urlencode({name: values.get(v, v) for name, v in call.query.items()})
        headers = {"accept": "application/json", **self._service.headers}
        if self._key:
            bearer = self._service.auth == "bearer"
            name = "authorization" if bearer else self._service.auth
            headers[name] = f"Bearer {self._key}" if bearer else self._key
        try:
            if call.body:
                body = encode(_fill(call.body, values))
                headers["content-type"] = "application/json"
                sent = self._http.post(url, body=body, headers=headers, timeouts=TIMEOUTS)
            else:
                sent = self._http.get(url, headers=headers, timeouts=TIMEOUTS)
            async with sent as answer:
                data = await answer.read(MOST_BYTES)
                status = answer.status
        except ProviderError as error:
            raise ToolError(f"{self._name} did not answer: {error}", transient=True) from error
        self._check(status)
        try:
            return decode(dict[str, JsonValue], data)
        except DecodeError as error:
            raise ToolError(f"{self._name} sent an invalid answer: {error}.") from error

    def _check(self, status: int) -> None:
        """Raise ToolError with the next step for an error status."""
        if status < 400:
            return
        name, variable = self._name, self._service.key
        if status in (401, 403):
            raise ToolError(f"{name} rejects the key; check {variable or 'its settings'}.")
        if status in (402, 429, 432, 433):
            raise ToolError(f"The quota of {name} is used up; set another `web.backend`.")
        raise ToolError(f"{name} answered with status {status}; try again later.", transient=True)


def _fill(template: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """Return the template with the values of its placeholders."""
    if isinstance(template, dict):
        return {name: _fill(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_fill(value, values) for value in template]
    return values.get(template, template) if isinstance(template, str) else template


def _find(answer: JsonValue, path: str) -> JsonValue:
    for name in path.split("."):
        answer = answer.get(name) if isinstance(answer, dict) else None
    return answer


def _items(answer: JsonValue, path: str) -> list[JsonObject]:
    found = _find(answer, path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _fields(item: JsonObject, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of our fields. A list of excerpts becomes one text."""
    texts: dict[str, str] = {}
    for name, path in fields.items():
        value = _find(item, path)
        if isinstance(value, list):
            value = " … ".join(str(part) for part in value)
        texts[name] = value if isinstance(value, str) else ""
    return texts


def _pages(answer: JsonValue, call: ServiceCall) -> list[WebPage]:
    found = [_fields(item, call.fields) for item in _items(answer, call.items)]
    return [
        WebPage(url=each["url"], title=each.get("title", ""), content=each["content"])
        for each in found
        if each["content"]
    ]


def _failed_page(answer: JsonValue, call: ServiceCall, url: str) -> WebPage:
    for item in _items(answer, call.failures) if call.failures else ():
        if item.get("url") == url and item.get("error"):
            return WebPage(url=url, error=str(item["error"]))
    return WebPage(url=url, error=NO_TEXT)


def _plain(text: str) -> str:
    """Return the text without markup of highlights."""
    from html import unescape

    return " ".join(unescape(_TAG.sub("", text)).split())
