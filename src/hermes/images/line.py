"""An HTTP client for one image server: JSON and forms out, JSON and images in, errors by kind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ProviderError
from hermes.core.world import World
from hermes.images.faults import ImageFault
from hermes.images.multipart import Upload, form
from hermes.images.pictures import MAX_BYTES
from hermes.images.refusals import error_from_response, unreachable_error
from hermes.images.studio import check_download
from hermes.providers.http import HttpClient, HttpResponse, Timeouts

# Errors after which nothing was generated and nothing is charged.
_BUSY = (429, 503)
_TRIES = 3
_LONGEST_WAIT = 20.0
_FAREWELL_SECONDS = 3.0


class ImageServerClient:
    """`label` names the server in messages, `hide` is a key that must not appear in them."""

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        label: str,
        world: World,
        headers: Mapping[str, str] | None = None,
        seconds: float = 300,
        hide: str = "",
    ) -> None:
        self.http = http
        self.url = url.rstrip("/")
        self.world = world
        self.label = label
        self.headers = dict(headers or {})
        self.timeouts = Timeouts(connect=10, read=seconds, whole=seconds)
        self._hide = hide

    async def post(
        self, path: str, body: JsonObject, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        sent = {"content-type": "application/json", **(headers or {})}
        return await self._json("POST", path, encode(body), sent)

    async def post_form(
        self, path: str, fields: Mapping[str, str], files: Sequence[Upload]
    ) -> JsonObject:
        body, headers = form(fields, files, self.world)
        return await self._json("POST", path, body, headers)

    async def get(self, path: str) -> JsonObject:
        return await self._json("GET", path, b"", {})

    async def notify(self, method: str, path: str) -> None:
        """Send a request whose answer does not matter."""
        try:
            async with self.http.send(
                method, self._at(path), body=b"", headers=self.headers, timeouts=self.timeouts
            ) as answer:
                await answer.drain()
        except ProviderError as error:
            raise unreachable_error(self.label, error) from error

    async def download_image(self, path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """Download an image from the same server."""
        try:
            async with self.http.get(
                self._at(path), headers=self.headers, timeouts=self.timeouts
            ) as answer:
                if answer.status >= 400:
                    raise await self._error_for(answer)
                data = await answer.read(max_bytes + 1)
                sort = answer.headers.get("content-type", "")
        except ProviderError as error:
            raise unreachable_error(self.label, error) from error
        return check_download(data, sort, cut=False, max_bytes=max_bytes)

    def owns(self, url: str) -> bool:
        """Return whether a URL has the scheme, host and port of this server."""
        here, there = urlsplit(self.url), urlsplit(url)
        return (here.scheme, here.netloc) == (there.scheme, there.netloc)

    async def _json(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> JsonObject:
        sent = {"accept": "application/json", **self.headers, **headers}
        for left in range(_TRIES - 1, -1, -1):
            try:
                async with self.http.send(
                    method, self._at(path), body=body, headers=sent, timeouts=self.timeouts
                ) as answer:
                    if answer.status < 400:
                        return self._object(await answer.read())
                    fault = await self._error_for(answer)
                    wait = _wait(answer)
            except ProviderError as error:
                raise unreachable_error(self.label, error) from error
            if answer.status not in _BUSY or wait is None or not left:
                raise fault
            await self.world.clock.sleep(wait)
        raise AssertionError("the last try returns or raises")

    def _at(self, path: str) -> str:
        """Return a URL of this server: no other server receives the key."""
        if not path.startswith(("http://", "https://")):
            return f"{self.url}/{path.lstrip('/')}"
        if not self.owns(path):
            raise ImageFault(f"{self.label} returned a URL of another server.")
        return urljoin(self.url, path)

    def _object(self, raw: bytes) -> JsonObject:
        try:
            return decode(JsonObject, raw)
        except DecodeError as error:
            what = "a web page" if raw.lstrip()[:1] == b"<" else "something"
            raise ImageFault(
                f"{self.label} sent {what} that is not a JSON object; is the address right?",
                kind="api_error",
            ) from error

    async def _error_for(self, answer: HttpResponse) -> ImageFault:
        text = await answer.read_error()
        return error_from_response(self.label, answer.status, text, answer.headers, hide=self._hide)


def _wait(answer: HttpResponse) -> float | None:
    """Return how long a busy server wants us to wait; None when that is too long, or missing."""
    try:
        seconds = float(answer.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= _LONGEST_WAIT else None


async def cancel_request(line: ImageServerClient, method: str, path: str) -> None:
    """Cancel a request on the server; best effort."""
    with suppress(ImageFault, TimeoutError):
        async with asyncio.timeout(_FAREWELL_SECONDS):
            await line.notify(method, path)
