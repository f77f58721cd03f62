"""Fetches URLs: the policy judges every address, and the connection goes to exactly the judged
address."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from hermes.core.effects import Ask, Deny, FetchUrl
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.ports import FetchResponse
from hermes.policy.urls.judging import Passage, Urls
from hermes.policy.urls.parsing import Target
from hermes.providers.http11 import (
    ConnectionTarget,
    HttpExchange,
    ProtocolError,
    open_http_connection,
)
from hermes.version import __version__
from hermes.web.body import read_body

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
        self, urls: Urls, *, proxy: str = "", no_proxy: str = "", ca_file: str | None = None
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
        passage: Passage,
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


def _open(passage: Passage) -> Target:
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
