"""Fetches URLs and extracts their text; the policy judges every address."""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urljoin

from hermes.codec.values import Value
from hermes.core.effects import Allow, Ask, Deny, FetchUrl
from hermes.core.errors import EffectDenied, HermesError, ToolError
from hermes.core.ports import FetchResponse
from hermes.net.http import HttpClient, Timeouts
from hermes.net.http import HttpResponse as HttpAnswer
from hermes.net.http11 import (
    ConnectionTarget,
    HttpExchange,
    ProtocolError,
    open_http_connection,
)
from hermes.policy.urls.parsing import Target
from hermes.policy.urls.resolver import SystemResolver
from hermes.policy.urls.url_policy import MOST_REDIRECTS, UrlDecision, UrlPolicy
from hermes.version import __version__


class ResponseBody(NamedTuple):
    data: bytes
    cut: bool


async def read_body(exchange: HttpExchange, max_bytes: int, seconds: float) -> ResponseBody:
    """Return the first `max_bytes` of the body. A small compressed body may expand to any size, so
    decompression stops at the limit."""
    unpacker = _make_decompressor(exchange.headers.get("content-encoding", ""))
    data = bytearray()
    while piece := await exchange.read(seconds):
        if unpacker is None:
            data += piece
        else:
            data += _decompress(unpacker, piece, max_bytes + 1 - len(data))
        if len(data) > max_bytes:
            return ResponseBody(bytes(data[:max_bytes]), cut=True)
    return ResponseBody(bytes(data), cut=False)


def _make_decompressor(encoding: str) -> zlib._Decompress | None:
    match encoding.strip().lower():
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            # 47: gzip or zlib.
            return zlib.decompressobj(47)
        case other:
            raise ProtocolError(f"the response is compressed as {other}")


def _decompress(unpacker: zlib._Decompress, piece: bytes, most: int) -> bytes:
    try:
        return unpacker.decompress(piece, max(1, most))
    except zlib.error as error:
        raise ProtocolError("the response cannot be decompressed") from error


_SILENT = frozenset(
    "script style noscript template svg iframe object head nav footer aside form button".split()
)
_BLOCKS = frozenset(
    "p div section article main header h1 h2 h3 h4 h5 h6 ul ol li table tr blockquote pre br hr dl"
    " dt dd figure figcaption details summary".split()
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_LOOKED_AT = 2_048
_TEXTS = ("text/", "json", "xml", "javascript", "yaml", "toml")


def extract_text(page: FetchResponse) -> str:
    """ToolError for an error response, and for content that is not text."""
    if page.status >= 400:
        raise ToolError(f"the server answered {page.status}.")
    kind = page.headers.get("content-type", "text/plain").lower()
    if not any(part in kind for part in _TEXTS):
        raise ToolError(f"it is not text ({kind.partition(';')[0]}).")
    text = decode_body(page.body, kind)
    return extract_words(text) if "html" in kind else text.strip()


def decode_body(body: bytes, content_type: str) -> str:
    """Decode as the header says, else as the page itself says, else as UTF-8."""
    beginning = body[:_LOOKED_AT].decode("latin-1")
    named = _CHARSET.search(content_type) or _CHARSET.search(beginning)
    try:
        return body.decode(named[1] if named else "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def extract_words(html: str) -> str:
    """Return the readable text; headings, lists and code keep their shape."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._silent: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._listing = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        if tag in _SILENT:
            self._silent.append(tag)
        if self._silent:
            return
        if tag in _BLOCKS:
            self._parts.append("\n")
        self._listing += tag == "pre"
        if tag in _HEADINGS:
            self._parts.append(f"\n{_HEADINGS[tag]}")
        elif tag == "li":
            self._parts.append("- ")
        elif tag in ("td", "th"):
            self._parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in self._silent:
            # Unclosed elements inside end with it.
            del self._silent[len(self._silent) - 1 - self._silent[::-1].index(tag) :]
            return
        if not self._silent and tag in _BLOCKS:
            self._parts.append("\n")
            self._listing = max(0, self._listing - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif not self._silent:
            self._parts.append(data if self._listing else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        body = re.sub(
            r"\n{3,}", "\n\n", "\n".join(_strip_leading_space(line) for line in lines)
        ).strip()
        title = " ".join("".join(self._title).split())
        known = not title or body.startswith((f"# {title}", title))
        return body if known else f"{title}\n\n{body}".strip()


def _strip_leading_space(line: str) -> str:
    """A single space at the beginning belongs to the line before it."""
    return line[1:] if line.startswith(" ") and not line.startswith("  ") else line


REDIRECT_STATUSES = (301, 302, 303, 307, 308)
TIMEOUTS = Timeouts(connect=10, read=30)
MOST_BYTES = 20 * 1024 * 1024


class HttpResponse(Value):
    """Header names are in lower case."""

    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


class JudgedHttp:
    """`own` URLs come from the user's settings and are exempt from the check. Behind a proxy the
    proxy resolves names, so only the text of a URL can be checked here."""

    def __init__(self, http: HttpClient, own: Mapping[str, str], *, proxied: bool = False) -> None:
        self._http = http
        self._own = tuple(url.rstrip("/") + "/" for url in own.values())
        self._proxied = proxied
        self._urls = UrlPolicy(SystemResolver())

    async def fetch(self, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        for _ in range(MOST_REDIRECTS + 1):
            await self._check(url)
            async with self._send(url, headers, body) as answer:
                location = answer.headers.get("location", "")
                if answer.status not in REDIRECT_STATUSES or not location or body is not None:
                    data = await answer.read(MOST_BYTES + 1)
                    if len(data) > MOST_BYTES:
                        raise HermesError(f"{url} sends more than {MOST_BYTES} bytes; refused.")
                    return HttpResponse(status=answer.status, headers=answer.headers, body=data)
            url = urljoin(url, location)
            # A key for one server is not sent to the next.
            headers = {name: value for name, value in headers.items() if name != "authorization"}
        raise HermesError(f"{url} was redirected more than {MOST_REDIRECTS} times.")

    async def _check(self, url: str) -> None:
        if url.startswith(self._own):
            return
        if self._proxied:
            decision = self._urls.quick_check(url)
        else:
            decision = (await self._urls.judge(url)).decision
        if not isinstance(decision, Allow):
            raise HermesError(f"{url} was not requested: {decision.reason}")

    def _send(
        self, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[HttpAnswer]:
        if body is None:
            return self._http.get(url, headers=headers, timeouts=TIMEOUTS)
        return self._http.post(url, body=body, headers=headers, timeouts=TIMEOUTS)


USER_AGENT = f"hermes-agent/{__version__}"
METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
REDIRECTS = frozenset((301, 302, 303, 307, 308))
# Headers that are for one server and are not sent to a redirect target.
PRIVATE = frozenset(("authorization", "cookie", "proxy-authorization", "x-api-key"))


class _Request:
    """What is sent, from redirect to redirect."""

    def __init__(self, method: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    def follow_redirect(self, status: int, before: Target, after: Target) -> None:
        """As in browsers: only 307 and 308 repeat the request, and secrets stay with their
        server."""
        if status in (301, 302, 303) and self.method != "HEAD":
            self.method, self.body = "GET", b""
            self.headers.pop("content-type", None)
        if before.origin != after.origin:
            for name in PRIVATE:
                self.headers.pop(name, None)


class WebFetcher:
    """With a proxy, names are judged here and resolved again by the proxy."""

    def __init__(
        self, urls: UrlPolicy, *, proxy: str = "", no_proxy: str = "", ca_file: str | None = None
    ) -> None:
        self._urls = urls
        self._proxy = proxy
        self._no_proxy = tuple(name.strip().lstrip(".") for name in no_proxy.split(",") if name)
        self._ca_file = ca_file
        self._trust: ssl.SSLContext | None = None

    async def fetch(
        self,
        effect: FetchUrl,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        max_bytes: int = 5_000_000,
        timeout: float = 30,
        passing: Callable[[FetchUrl], None] = lambda _: None,
    ) -> FetchResponse:
        method = effect.method.upper()
        if method not in METHODS:
            raise ToolError(f"{effect.method!r} is not an HTTP method.")
        request = _Request(method, headers or {}, body)
        try:
            async with asyncio.timeout(timeout):
                passage = await self._urls.judge(effect.url)
                return await self._follow(passage, request, max_bytes, timeout, passing)
        except TimeoutError:
            raise ToolError(f"{effect.url} did not answer within {timeout:g} s.") from None

    async def _follow(
        self,
        passage: UrlDecision,
        request: _Request,
        max_bytes: int,
        seconds: float,
        passing: Callable[[FetchUrl], None],
    ) -> FetchResponse:
        while True:
            target = _open(passage)
            answer = await self._ask(target, passage.connect, request, max_bytes, seconds)
            location = answer.headers.get("location", "")
            if answer.status not in REDIRECTS or not location:
                return answer
            passage = await self._urls.redirect(passage, location)
            there = _open(passage)
            request.follow_redirect(answer.status, target, there)
            passing(FetchUrl(url=there.url, method=request.method, sends_body=bool(request.body)))

    async def _ask(
        self, target: Target, connect: str, request: _Request, max_bytes: int, seconds: float
    ) -> FetchResponse:
        address = self._address(target, connect)
        trust = self._certificates() if address.secure else None
        try:
            connection = await open_http_connection(address, trust, seconds)
            try:
                sent = self._headers(target, request)
                exchange = await connection.request(
                    request.method, target.url, sent, request.body, seconds
                )
                return await _answer(target, request, exchange, max_bytes, seconds)
            finally:
                connection.abort()
        except ssl.SSLCertVerificationError:
            raise ToolError(f"The certificate of {target.host.name} is not valid.") from None
        except (ProtocolError, UnicodeError, EOFError) as error:
            raise ToolError(f"{target.host.name} sent an invalid response: {error}.") from error
        except TimeoutError:
            raise
        except OSError as error:
            why = error.strerror or "no connection"
            raise ToolError(f"{target.host.name} is not reachable: {why}.") from error

    def _headers(self, target: Target, request: _Request) -> dict[str, str]:
        found = {"user-agent": USER_AGENT, "accept": "*/*", "accept-encoding": "gzip, deflate"}
        if target.user:
            pair = unquote(target.user) if ":" in target.user else f"{unquote(target.user)}:"
            found["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        given = {n: v for n, v in request.headers.items() if n not in ("host", "content-length")}
        return {**found, **given, "connection": "close"}

    def _address(self, target: Target, connect: str) -> ConnectionTarget:
        host = target.host.address or target.host.name
        direct = any(host == name or host.endswith(f".{name}") for name in self._no_proxy)
        proxied = self._proxy and not direct and "*" not in self._no_proxy
        return ConnectionTarget(
            host=host,
            port=target.port,
            secure=target.scheme == "https",
            proxy=self._proxy if proxied else "",
            connect="" if proxied else connect,
        )

    def _certificates(self) -> ssl.SSLContext:
        if self._trust is None:
            try:
                self._trust = ssl.create_default_context(cafile=self._ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ToolError(f"The CA bundle {self._ca_file} cannot be read.") from error
        return self._trust


def _open(passage: UrlDecision) -> Target:
    """Return the target of the passage; EffectDenied when it is closed."""
    match passage.decision:
        case Deny(reason=reason) | Ask(reason=reason):
            raise EffectDenied(f"Not allowed: {reason} Do not retry or rephrase it.")
    assert passage.target is not None
    return passage.target


async def _answer(
    target: Target, request: _Request, exchange: HttpExchange, max_bytes: int, seconds: float
) -> FetchResponse:
    redirected = exchange.status in REDIRECTS and "location" in exchange.headers
    if request.method == "HEAD" or redirected:
        return FetchResponse(
            url=target.url, status=exchange.status, headers=exchange.headers, body=b""
        )
    body = await read_body(exchange, max_bytes, seconds)
    return FetchResponse(
        url=target.url,
        status=exchange.status,
        headers=exchange.headers,
        body=body.data,
        cut=body.cut,
    )
