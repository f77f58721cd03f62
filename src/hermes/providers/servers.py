"""Queries model servers for their kind, models and context windows."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.core.errors import ProviderError
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import HttpClient, HttpResponse, Timeouts
from hermes.providers.listing import (
    ModelInfo,
    read_listing,
    read_llamacpp_window,
    read_ollama_model,
)
from hermes.providers.wire.format import request_headers
from hermes.providers.wire.loose import object_of, objects_of, parse_json, text_of

QUERY_SECONDS = 2.0
LIST_SECONDS = 8.0
_MAX_BYTES = 16 * 1024 * 1024


class ServerQuery:
    """Queries one server; any failure counts as no response."""

    def __init__(
        self, http: HttpClient, url: str, *, key: str = "", seconds: float = QUERY_SECONDS
    ) -> None:
        self._http = http
        self._root = root_of(url)
        self._seconds = seconds
        self._headers = {"accept": "application/json", "content-type": "application/json"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"

    async def get(self, path: str) -> JsonValue:
        timeouts = Timeouts(connect=self._seconds, read=self._seconds)
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._http.get(
                    self._root + path, headers=self._headers, timeouts=timeouts
                ) as answer,
            ):
                return await _json(answer)
        except (ProviderError, TimeoutError):
            return None

    async def post(self, path: str, body: JsonObject) -> JsonValue:
        timeouts = Timeouts(connect=self._seconds, read=self._seconds)
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._http.post(
                    self._root + path, body=encode(body), headers=self._headers, timeouts=timeouts
                ) as answer,
            ):
                return await _json(answer)
        except (ProviderError, TimeoutError):
            return None


async def detect_server(
    http: HttpClient, url: str, *, key: str = "", seconds: float = QUERY_SECONDS
) -> str:
    """The kind of server as named in the catalogue, or "". Each request waits at most `seconds`;
    the order matters because some servers imitate others."""
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
    """What the server reports about one model now, or None. `server` is its kind, if known."""
    ask = ServerQuery(http, url, key=key, seconds=seconds)
    server = server or await detect_server(http, url, key=key, seconds=seconds)
    match server:
        case "ollama":
            return await _ollama_info(ask, model)
        case "lmstudio":
            return _find_entry(read_listing(await ask.get("/api/v1/models")), model)
        case "llamacpp":
            window = read_llamacpp_window(await ask.get("/props"))
            listed = _find_entry(read_listing(await ask.get("/v1/models")), model)
            known = listed or ModelInfo(id=model)
            return replace(known, window=window, loaded=True) if window else listed
        case _:
            return _find_entry(read_listing(await ask.get("/v1/models")), model)


async def list_models(
    http: HttpClient, endpoint: Endpoint, *, models_url: str = ""
) -> tuple[ModelInfo, ...]:
    """The models of an endpoint; ProviderError when it returns no list."""
    url = models_url or _models_url(endpoint)
    timeouts = Timeouts(connect=LIST_SECONDS, read=LIST_SECONDS)
    async with http.get(url, headers=request_headers(endpoint), timeouts=timeouts) as answer:
        body = await answer.read(_MAX_BYTES) if answer.status == 200 else b""
        status = answer.status
    found = read_listing(parse_json(body)) if body else ()
    if not found:
        raise ProviderError(
            f"{endpoint.host} lists no models (HTTP {status}); check key and base URL.",
            reason="auth" if status in (401, 403) else "unknown",
            status=status,
        )
    return found


async def find_models_url(http: HttpClient, url: str, *, key: str = "") -> str:
    """The address with a model listing: the given one, or with `/v1` added; "" if neither has
    one."""
    base = url.rstrip("/")
    for address in (base, f"{base}/v1"):
        place = urlsplit(address)
        ask = ServerQuery(http, address, key=key, seconds=LIST_SECONDS)
        page = await ask.get(place.path.removeprefix(_path_of(root_of(address))) + "/models")
        if read_listing(page):
            return address
    return ""


def root_of(url: str) -> str:
    """The address of the server without the path of a wire format."""
    base = url.rstrip("/")
    for end in ("/v1", "/openai", "/anthropic"):
        base = base.removesuffix(end)
    return base


async def _ollama_info(ask: ServerQuery, model: str) -> ModelInfo | None:
    """A loaded model uses the window it was loaded with."""
    shown = await ask.post("/api/show", {"name": model, "model": model})
    if not object_of(shown):
        return None
    info = read_ollama_model(model, shown)
    running = _find_entry(read_listing(await ask.get("/api/ps")), model)
    if running is not None and running.window:
        return replace(info, window=running.window, loaded=True)
    return info


def _find_entry(models: tuple[ModelInfo, ...], model: str) -> ModelInfo | None:
    """The entry of this model, or the only entry: some servers name their model by a path."""
    name = model.lower()
    for info in models:
        if info.id.lower() in (name, f"{name}:latest"):
            return info
    return models[0] if len(models) == 1 else None


def _models_url(endpoint: Endpoint) -> str:
    start = endpoint.url.rstrip("/")
    if endpoint.wire == "messages" and not start.endswith("/v1"):
        start += "/v1"
    return f"{start}/models"


def _path_of(url: str) -> str:
    return urlsplit(url).path.rstrip("/")


async def _json(answer: HttpResponse) -> JsonValue:
    return parse_json(await answer.read(_MAX_BYTES)) if answer.status == 200 else None
