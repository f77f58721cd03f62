"""Fetches URLs; the policy judges every address."""

from __future__ import annotations

import asyncio
import base64
import ssl
import zlib
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urljoin

from hermes.core.effects import Allow, Ask, Deny, FetchUrl
from hermes.core.errors import EffectDenied, HermesError, ToolError
from hermes.core.ports import FetchResponse
from hermes.net.http import HttpClient, Timeouts
from hermes.net.http11 import (
    ConnectionTarget,
    HttpExchange,
    ProtocolError,
    open_http_connection,
)
from hermes.policy.urls.parsing import Target
from hermes.policy.urls.url_policy import MOST_REDIRECTS, SystemResolver, UrlDecision, UrlPolicy
from hermes.version import __version__


async def read_body(exchange: HttpExchange, max_bytes: int, seconds: float) -> tuple[bytes, bool]:
    """Return the first `max_bytes` of the body, and whether there was more. A small compressed body
    may expand to any size, so decompression stops at the limit."""
    encoding = exchange.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ProtocolError(f"the response is compressed as {encoding}")
    # 47: gzip or zlib.
    unpacker = None if encoding in ("", "identity") else zlib.decompressobj(47)
    data = bytearray()
    while piece := await exchange.read(seconds):
        if unpacker is not None:
            try:
                piece = unpacker.decompress(piece, max(1, max_bytes + 1 - len(data)))
            except zlib.error as error:
                raise ProtocolError("the response cannot be decompressed") from error
        data += piece
        if len(data) > max_bytes:
            return bytes(data[:max_bytes]), True
    return bytes(data), False


REDIRECTS = frozenset((301, 302, 303, 307, 308))
TIMEOUTS = Timeouts(connect=10, read=30)
MOST_BYTES = 20 * 1024 * 1024


class JudgedHttp:
    """An HTTP client for the URLs of skills and MCP servers; the policy judges each before it is
    requested. `own` URLs come from the user's settings and are not judged. Behind a proxy the proxy
    resolves names, so only the text of a URL can be judged here."""

    def __init__(self, http: HttpClient, own: Mapping[str, str], *, proxied: bool = False) -> None:
        self._http = http
        self._own = tuple(url.rstrip("/") + "/" for url in own.values())
        self._proxied = proxied
        self._urls = UrlPolicy(SystemResolver())

    async def fetch(
        self, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> FetchResponse:
        for _ in range(MOST_REDIRECTS + 1):
            await self._check(url)
            if body is None:
                sent = self._http.get(url, headers=headers, timeouts=TIMEOUTS)
            else:
                sent = self._http.post(url, body=body, headers=headers, timeouts=TIMEOUTS)
            async with sent as answer:
                location = answer.headers.get("location", "")
                if answer.status not in REDIRECTS or not location or body is not None:
                    data = await answer.read(MOST_BYTES + 1)
                    if len(data) > MOST_BYTES:
                        raise HermesError(f"{url} sends more than {MOST_BYTES} bytes; refused.")
                    return FetchResponse(
                        url=url, status=answer.status, headers=answer.headers, body=data
                    )
            url = urljoin(url, location)
            # A key for one server is not sent to the next.
            headers = {name: value for name, value in headers.items() if name != "authorization"}
        raise HermesError(f"{url} redirects more than {MOST_REDIRECTS} times; check the URL.")

    async def _check(self, url: str) -> None:
        if url.startswith(self._own):
            return
        if self._proxied:
            decision = self._urls.quick_check(url)
        else:
            decision = (await self._urls.check(url)).decision
        if not isinstance(decision, Allow):
            raise HermesError(f"{url} was not requested: {decision.reason}")


USER_AGENT = f"hermes-agent/{__version__}"
METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
# Headers that are for one server and are not sent to a redirect target.
PRIVATE = frozenset(("authorization", "cookie", "proxy-authorization", "x-api-key"))


class _Request:
    """The request, as it changes from redirect to redirect."""

    def __init__(self, method: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    def follow_redirect(self, status: int, before: Target, after: Target) -> None:
        """Change the request as browsers do: only 307 and 308 repeat it, and secrets stay with
        their server."""
        if status in (301, 302, 303) and self.method != "HEAD":
            self.method, self.body = "GET", b""
            self.headers.pop("content-type", None)
        if before.origin != after.origin:
            for name in PRIVATE:
                self.headers.pop(name, None)


class WebFetcher:
    """The web access of a session. With a proxy, names are judged here and resolved again by the
    proxy."""

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
                passage = await self._urls.check(effect.url)
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
            raise ToolError(
                f"{target.host.name} is not reachable: {why}.", transient=True
            ) from error

    def _headers(self, target: Target, request: _Request) -> dict[str, str]:
        headers = {"user-agent": USER_AGENT, "accept": "*/*", "accept-encoding": "gzip, deflate"}
        if target.user:
            pair = unquote(target.user) if ":" in target.user else f"{unquote(target.user)}:"
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        own = {n: v for n, v in request.headers.items() if n not in ("host", "content-length")}
        return {**headers, **own, "connection": "close"}

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
    """Return the allowed target; raise EffectDenied when the policy denies it."""
    match passage.decision:
        case Deny(reason=reason) | Ask(reason=reason):
            raise EffectDenied(f"Not allowed: {reason} Do not retry or rephrase it.")
    assert passage.target is not None
    return passage.target


async def _answer(
    target: Target, request: _Request, exchange: HttpExchange, max_bytes: int, seconds: float
) -> FetchResponse:
    redirected = exchange.status in REDIRECTS and "location" in exchange.headers
    body, cut = b"", False
    if request.method != "HEAD" and not redirected:
        body, cut = await read_body(exchange, max_bytes, seconds)
    return FetchResponse(
        url=target.url, status=exchange.status, headers=exchange.headers, body=body, cut=cut
    )
