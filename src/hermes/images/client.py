"""An HTTP client for one image server: JSON and forms out, JSON and images in, errors by kind."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.errors import ProviderError
from hermes.core.world import World
from hermes.images.storage import MAX_BYTES, ImageFault, media_type
from hermes.images.studio import check_download
from hermes.net.http import HttpClient, HttpResponse, Timeouts


class Upload(Value):
    field: str
    name: str
    data: bytes


def form(
    fields: Mapping[str, str], files: Sequence[Upload], world: World
) -> tuple[bytes, dict[str, str]]:
    """Return the body and its content type."""
    boundary = world.new_id("hermes", 24)
    while any(boundary.encode() in each.data for each in files):
        boundary = world.new_id("hermes", 24)
    body = bytearray()
    for name, value in fields.items():
        body += f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n'.encode()
        body += value.encode() + b"\r\n"
    for file in files:
        kind = media_type(file.data) or "application/octet-stream"
        safe = re.sub(r'[^\w.() -]|"', "_", file.name)[:100] or "image"
        body += (
            f'--{boundary}\r\ncontent-disposition: form-data; name="{file.field}"; '
            f'filename="{safe}"\r\ncontent-type: {kind}\r\n\r\n'
        ).encode()
        body += file.data + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return bytes(body), {"content-type": f"multipart/form-data; boundary={boundary}"}


_LONGEST = 300
_POLICY = (
    "content_policy", "content policy", "moderation", "safety system", "safety_violations", "nsfw",
    "flagged", "sensitive content", "sensitive_words", "prohibited_content", "image_safety",
)  # fmt: skip
_KINDS = {401: "auth_required", 403: "auth_required", 408: "timeout", 429: "rate_limited"}
_KINDS |= {504: "timeout", 400: "invalid_argument", 404: "invalid_argument"}
_KINDS |= {413: "invalid_argument", 415: "invalid_argument", 422: "invalid_argument"}
_NEXT = {
    "auth_required": "check its key with `hermes tools images`",
    "rate_limited": "wait a little, or choose another provider",
    "content_policy": "describe something else",
}
_WORDS = ("message", "msg", "detail", "error", "title", "errors", "description")


def error_from_response(
    label: str, status: int, body: str, headers: Mapping[str, str], *, hide: str = ""
) -> ImageFault:
    """Build the error for a response with an error status. `hide` is a key that a server may
    repeat."""
    if "html" in headers.get("content-type", "").lower() or body.lstrip()[:1] == "<":
        details = "a web page instead of JSON; is the address right?"
    else:
        try:
            details = " ".join(_texts(decode(object, body)))
        except DecodeError:
            details = body
    kind = "content_policy" if is_policy(body) else _KINDS.get(status, "api_error")
    if kind == "rate_limited" and (wait := headers.get("retry-after", "")):
        details = f"{details} (retry after {wait[:20]} s)".strip()
    return ImageFault(_sentence(f"{label} answered {status}", details, kind, hide), kind=kind)


def error_from_message(
    label: str, details: JsonValue, *, kind: str = "provider_error"
) -> ImageFault:
    """Build the error for a failure that a server reports with a success status."""
    text = " ".join(_texts(details)) or "it gave no reason"
    if is_policy(text):
        kind = "content_policy"
    return ImageFault(_sentence(f"{label} could not generate it", text, kind, ""), kind=kind)


def unreachable_error(label: str, error: ProviderError) -> ImageFault:
    kind = "timeout" if error.reason == "timeout" else "api_error"
    return ImageFault(f"{label}: {error}", kind=kind)


def is_policy(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in _POLICY)


def _sentence(what: str, details: str, kind: str, hide: str) -> str:
    if hide:
        details = details.replace(hide, "***")
    excerpt = " ".join(details.split())[:_LONGEST].rstrip(" .")
    step = _NEXT.get(kind, "")
    return what + (f": {excerpt}" if excerpt else "") + (f"; {step}." if step else ".")


def _texts(value: JsonValue) -> Iterator[str]:
    """Return the texts of an error object of any shape, without duplicates."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value[:3]:
            yield from _texts(each)
    elif isinstance(value, dict):
        yield from _texts(next((value[word] for word in _WORDS if value.get(word)), None))


# Errors after which nothing was generated and nothing is charged.
_BUSY = (429, 503)
_TRIES = 3
# A busy server that names no time, or a longer one, is not asked again.
_LONGEST_WAIT = 20.0
_SECONDS = re.compile(r"\d+(?:\.\d+)?")
_CANCEL_SECONDS = 3.0


class ImageServerClient:
    """Sends requests to one image server. `label` names the server in messages, `hide` is a key
    that must not appear in them."""

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

    async def cancel(self, method: str, path: str) -> None:
        """Cancel a request on the server; best effort."""
        with suppress(ImageFault, ProviderError, TimeoutError):
            async with (
                asyncio.timeout(_CANCEL_SECONDS),
                self.http.send(
                    method, self._at(path), body=b"", headers=self.headers, timeouts=self.timeouts
                ) as answer,
            ):
                await answer.drain()

    async def download_image(self, path: str) -> bytes:
        """Download an image from the same server."""
        try:
            async with self.http.get(
                self._at(path), headers=self.headers, timeouts=self.timeouts
            ) as answer:
                if answer.status >= 400:
                    raise await self.error_for(answer)
                data = await answer.read(MAX_BYTES + 1)
                sort = answer.headers.get("content-type", "")
        except ProviderError as error:
            raise unreachable_error(self.label, error) from error
        return check_download(data, sort, cut=False, max_bytes=MAX_BYTES)

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
                    fault = await self.error_for(answer)
                    wait = answer.headers.get("retry-after", "")
            except ProviderError as error:
                raise unreachable_error(self.label, error) from error
            seconds = float(wait) if _SECONDS.fullmatch(wait) else _LONGEST_WAIT + 1
            if answer.status not in _BUSY or seconds > _LONGEST_WAIT or not left:
                raise fault
            await self.world.clock.sleep(seconds)
        raise AssertionError("unreachable: the last attempt returns or raises")

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
                f"{self.label} sent {what} that is not a JSON object; check the address.",
                kind="api_error",
            ) from error

    async def error_for(self, answer: HttpResponse) -> ImageFault:
        text = await answer.read_error()
        return error_from_response(self.label, answer.status, text, answer.headers, hide=self._hide)
