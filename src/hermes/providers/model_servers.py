"""Queries model servers for their kind, models and windows, and caches the listings."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value, replace
from hermes.core.errors import ProviderError
from hermes.core.world import Clock
from hermes.net.addresses import host_of
from hermes.net.http import HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint
from hermes.providers.model_listing import (
    ModelInfo,
    read_listing,
    read_llamacpp_window,
    read_ollama_model,
)
from hermes.providers.wire.events import object_of, objects_of, parse_json, text_of
from hermes.providers.wire.format import request_headers

QUERY_SECONDS = 2.0
LIST_SECONDS = 8.0
_MAX_BYTES = 16 * 1024 * 1024


class ServerQuery:
    """Queries one server; any failure counts as no response."""

    def __init__(
        self,
        http: HttpClient,
        url: str,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
        seconds: float = QUERY_SECONDS,
    ) -> None:
        self._http = http
        self._root = root_of(url)
        self._seconds = seconds
        self._headers = {"accept": "application/json", "content-type": "application/json"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._headers |= headers or {}

    async def get(self, path: str) -> JsonValue:
        status, body = await self.send("GET", path)
        return parse_json(body) if status == 200 else None

    async def post(self, path: str, fields: JsonObject) -> JsonValue:
        status, body = await self.send("POST", path, encode(fields))
        return parse_json(body) if status == 200 else None

    async def send(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and body of the response; status 0 if there is none."""
        timeouts = Timeouts(connect=self._seconds, read=self._seconds)
        request = self._http.send(
            method, self._root + path, body=body, headers=self._headers, timeouts=timeouts
        )
        try:
            async with asyncio.timeout(self._seconds), request as answer:
                return answer.status, await answer.read(_MAX_BYTES)
        except (ProviderError, TimeoutError):
            return 0, b""


async def detect_server(
    http: HttpClient, url: str, *, key: str = "", seconds: float = QUERY_SECONDS
) -> str:
    """Return the kind of server as named in the catalogue, or "". Each request waits at most
    `seconds`; the order matters because some servers imitate others."""
    ask = ServerQuery(http, url, key=key, seconds=seconds)
    if objects_of(object_of(await ask.get("/api/v1/models")).get("models")):
        return "lmstudio"
    if isinstance(object_of(await ask.get("/api/tags")).get("models"), list):
        return "ollama"
    if read_llamacpp_window(await ask.get("/props")) is not None:
        return "llamacpp"
    if text_of(object_of(await ask.get("/version")).get("version")):
        return "vllm"
    return ""


async def model_info(
    http: HttpClient,
    url: str,
    model: str,
    *,
    key: str = "",
    server: str = "",
    seconds: float = QUERY_SECONDS,
) -> ModelInfo | None:
    """Return what the server reports about one model now, or None. `server` is its kind, if
    known."""
    ask = ServerQuery(http, url, key=key, seconds=seconds)
    server = server or await detect_server(http, url, key=key, seconds=seconds)
    match server:
        case "ollama":
            shown = await ask.post("/api/show", {"name": model, "model": model})
            if not object_of(shown):
                return None
            info = read_ollama_model(model, shown)
            running = _find_entry(read_listing(await ask.get("/api/ps")), model)
            if running is not None and running.window:
                # A loaded model uses the window it was loaded with.
                return replace(info, window=running.window, loaded=True)
            return info
        case "lmstudio":
            return _find_entry(read_listing(await ask.get("/api/v1/models")), model)
        case "llamacpp":
            window = read_llamacpp_window(await ask.get("/props"))
            listed = _find_entry(read_listing(await ask.get("/v1/models")), model)
            known = listed or ModelInfo(id=model)
            return replace(known, window=window, loaded=True) if window else listed
        case _:
            return _find_entry(read_listing(await ask.get("/v1/models")), model)


async def query_endpoint(http: HttpClient, endpoint: Endpoint) -> tuple[str, ModelInfo | None]:
    """Return the kind of the endpoint's server, and what it reports about the model."""
    url, key = endpoint.url, endpoint.key
    server = endpoint.server or await detect_server(http, url, key=key)
    return server, await model_info(http, url, endpoint.model, key=key, server=server or "none")


async def list_models(
    http: HttpClient, endpoint: Endpoint, *, models_url: str = ""
) -> tuple[ModelInfo, ...]:
    """Return the models of an endpoint; raise ProviderError when it returns no list."""
    url = models_url
    if not url:
        start = endpoint.url.rstrip("/")
        versioned = endpoint.wire != "messages" or start.endswith("/v1")
        url = f"{start}/models" if versioned else f"{start}/v1/models"
    timeouts = Timeouts(connect=LIST_SECONDS, read=LIST_SECONDS)
    async with http.get(url, headers=request_headers(endpoint), timeouts=timeouts) as answer:
        body = await answer.read(_MAX_BYTES) if answer.status == 200 else b""
        status = answer.status
    models = read_listing(parse_json(body)) if body else ()
    if not models:
        raise ProviderError(
            f"{endpoint.host} lists no models (HTTP {status}); check key and base URL.",
            reason="auth" if status in (401, 403) else "unknown",
            status=status,
        )
    return models


async def find_models_url(http: HttpClient, url: str, *, key: str = "") -> str:
    """Find the address with a model listing: `url`, or `url` with `/v1` added; "" if neither has
    one."""
    base = url.rstrip("/")
    for address in (base, f"{base}/v1"):
        ask = ServerQuery(http, address, key=key, seconds=LIST_SECONDS)
        root = urlsplit(root_of(address)).path.rstrip("/")
        page = await ask.get(urlsplit(address).path.removeprefix(root) + "/models")
        if read_listing(page):
            return address
    return ""


def root_of(url: str) -> str:
    """Return the address of the server without the path of a wire format."""
    base = url.rstrip("/")
    for end in ("/v1", "/openai", "/anthropic"):
        base = base.removesuffix(end)
    return base


def _find_entry(models: tuple[ModelInfo, ...], model: str) -> ModelInfo | None:
    """Return the entry of this model, or the only entry: some servers name their model by a
    path."""
    name = model.lower()
    for info in models:
        if info.id.lower() in (name, f"{name}:latest"):
            return info
    return models[0] if len(models) == 1 else None


TTL_SECONDS = 3600.0


class ModelListing(Value):
    """The models of an address at a moment."""

    url: str
    at: float  # Unix time
    models: tuple[ModelInfo, ...]
    server: str = ""  # the kind of a local server in the catalogue
    complete: bool = True  # the whole list; otherwise only models that were asked about

    def find(self, model: str) -> ModelInfo | None:
        """Find a model by id; a name without a maker prefix also finds an entry that has one."""
        name = model.lower()
        exact = (info for info in self.models if info.id.lower() == name)
        tails = (info for info in self.models if info.id.lower().rpartition("/")[2] == name)
        return next(exact, None) or next(tails, None)

    def serves(self, model: str) -> bool:
        """Return whether the list names the model: exactly, with a tag or a date, or within the
        path of a file."""
        name = model.lower()
        ids = [info.id.lower() for info in self.models]
        tails = (each.rpartition("/")[2] for each in ids)
        starts = (name, f"{name}:latest", f"{name}.gguf")
        dated = any(each.startswith(f"{name}-20") for each in ids)
        return self.find(model) is not None or dated or any(each in starts for each in tails)


class ModelListingCache:
    """Model listings on disk. Listings younger than `seconds` are not fetched again. Reading never
    raises: a missing or damaged file counts as no listing."""

    def __init__(self, folder: Path, clock: Clock, *, seconds: float = TTL_SECONDS) -> None:
        self._folder = folder
        self._clock = clock
        self._seconds = seconds

    def cached(self, url: str) -> ModelListing | None:
        """Return the cached listing of this address, of any age."""
        try:
            found = decode(ModelListing, self._file(url).read_bytes())
        except (OSError, DecodeError):
            return None
        return found if found.url == url else None

    def fresh(self, url: str, *, partial: bool = False) -> ModelListing | None:
        """Return a recent listing; with `partial`, also one of single models."""
        found = self.cached(url)
        if found is not None and not (found.complete or partial):
            return None
        if found is None or not 0 <= self._clock.now() - found.at < self._seconds:
            return None
        return found

    async def fetch(
        self, http: HttpClient, endpoint: Endpoint, *, models_url: str = "", refresh: bool = False
    ) -> ModelListing:
        """Return a fresh listing, cached or fetched; raise ProviderError when the endpoint returns
        none."""
        if not refresh and (kept := self.fresh(endpoint.url)) is not None:
            return kept
        models = await list_models(http, endpoint, models_url=models_url)
        server = endpoint.server
        if not server and endpoint.is_local:
            server = await detect_server(http, endpoint.url, key=endpoint.key)
        listing = ModelListing(url=endpoint.url, at=self._clock.now(), models=models, server=server)
        self.store(listing)
        return listing

    def store(self, listing: ModelListing) -> None:
        """Write the listing atomically; do nothing if the folder is not writable."""
        path = self._file(listing.url)
        with suppress(OSError):
            replace_file(path, encode(listing), durable=False)

    def _file(self, url: str) -> Path:
        digest = hashlib.sha256(url.encode()).hexdigest()[:12]
        return self._folder / f"models-{host_of(url) or 'unknown'}-{digest}.json"
