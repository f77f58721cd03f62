"""Finds a model server on this machine, for the case that nothing is configured."""

from __future__ import annotations

import asyncio
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from hermes.codec.values import Value
from hermes.core.errors import ConfigError, ProviderError
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import Http, Timeouts
from hermes.providers.listing import ModelInfo, read_listing
from hermes.providers.servers import list_models
from hermes.providers.vendor import Catalogue
from hermes.providers.wire.loose import parsed

HOST = "127.0.0.1"
_CONNECT_SECONDS = 0.15
_ANSWER_SECONDS = 0.5
_MAX_BYTES = 1024 * 1024

# Parts of the names of models that cannot chat, or that a local server only passes on to a cloud.
_UNFIT = (
    "cloud", "embed", "bge-", "minilm", "rerank", "whisper", "tts", "clip", "stable-diffusion",
    "flux", "moderation", "guard",
)  # fmt: skip
# Parts of the names of models that are known to call tools, the better ones first.
_SKILLED = (
    "gpt-oss", "qwen3", "glm-4", "devstral", "hermes", "qwen2.5", "mistral", "llama3.3",
    "llama-3.3", "llama3.1", "llama-3.1", "granite", "command-r", "nemotron", "kimi", "deepseek",
    "llama3.2", "llama-3.2", "firefunction", "cogito", "lfm",
)  # fmt: skip


class Place(NamedTuple):
    """`server` is the kind of server that usually listens there, as the catalogue names it."""

    label: str
    port: int
    path: str
    server: str = ""


PLACES = (
    Place("Ollama", 11434, "/api/tags", "ollama"),
    Place("LM Studio", 1234, "/v1/models", "lmstudio"),
    Place("llama.cpp", 8080, "/v1/models", "llamacpp"),
    Place("vLLM", 8000, "/v1/models", "vllm"),
)


class Found(Value):
    """A server that answered, and a sentence for the person who did not configure it."""

    endpoint: Endpoint
    line: str


async def find_local(
    http: Http, catalogue: Catalogue, *, places: tuple[Place, ...] = PLACES
) -> Found | None:
    """The first place with a model that can chat, or None. Asks this machine only, all places at
    once; a machine where nobody listens costs a few refused connections and no HTTP library."""
    open_places = await _listening(places)
    if not open_places:
        return None
    http.warm(f"http://{HOST}")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_models(http, place)) for place in open_places]
    for place, task in zip(open_places, tasks, strict=True):
        infos = task.result()
        model = choose([info.id for info in infos])
        if model:
            info = next(info for info in infos if info.id == model)
            return _found(place, info, catalogue)
    return None


def listens(url: str) -> bool:
    """Whether anybody takes connections at an address of this machine; told at once."""
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or HOST, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


async def first_model(http: Http, endpoint: Endpoint) -> str:
    """The model of this endpoint that is most likely to chat; ConfigError when it names none."""
    try:
        infos = await list_models(http, endpoint)
    except ProviderError as error:
        if error.status is None:
            raise
        infos = ()
    found = choose([info.id for info in infos if info.tools is not False])
    if not found:
        raise ConfigError(f"{endpoint.host} names no model; choose one with -m.")
    return found


def choose(models: list[str]) -> str:
    """The model that is most likely to chat and to call tools; "" when there is none."""
    able = [model for model in models if not any(word in model.lower() for word in _UNFIT)]
    return min(able, key=_rank, default="")


def _rank(model: str) -> int:
    name = model.lower()
    return next((place for place, word in enumerate(_SKILLED) if word in name), len(_SKILLED))


async def _listening(places: tuple[Place, ...]) -> list[Place]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_listens(place.port)) for place in places]
    return [place for place, task in zip(places, tasks, strict=True) if task.result()]


async def _listens(port: int) -> bool:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _models(http: Http, place: Place) -> tuple[ModelInfo, ...]:
    """The models there; none when it is no model server after all."""
    url = f"http://{HOST}:{place.port}{place.path}"
    timeouts = Timeouts(connect=_CONNECT_SECONDS, read=_ANSWER_SECONDS)
    try:
        async with (
            asyncio.timeout(_ANSWER_SECONDS),
            http.get(url, headers={"accept": "application/json"}, timeouts=timeouts) as answer,
        ):
            body = await answer.read(_MAX_BYTES) if answer.status == 200 else b""
    except (ProviderError, TimeoutError):
        return ()
    return read_listing(parsed(body))


def _found(place: Place, info: ModelInfo, catalogue: Catalogue) -> Found:
    vendor = catalogue.vendors["custom"]
    url = f"http://{HOST}:{place.port}/v1"
    endpoint = catalogue.endpoint(vendor, info.id, url=url, info=info, server=place.server)
    known = _rank(info.id) < len(_SKILLED)
    doubt = "" if known else " It may not be able to call tools."
    return Found(
        endpoint=endpoint,
        line=f"Using {info.id} on the {place.label} server at {HOST}:{place.port}; nothing leaves"
        f" this machine.{doubt}",
    )
