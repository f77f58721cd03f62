"""Finds a model server on this machine when nothing is configured."""

from __future__ import annotations

import asyncio
import re
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from hermes.codec.values import Value
from hermes.core.errors import ConfigError, ProviderError
from hermes.net.http import HttpClient
from hermes.providers.endpoint import Endpoint
from hermes.providers.model_catalogue import ModelCatalogue
from hermes.providers.model_listing import ModelInfo, read_listing
from hermes.providers.model_servers import ServerQuery, list_models

HOST = "127.0.0.1"
_CONNECT_SECONDS = 0.15
_ANSWER_SECONDS = 0.5

# Parts of names of models that cannot chat, or that a local server forwards to a cloud.
_UNSUITABLE = (
    "cloud", "embed", "bge-", "minilm", "rerank", "whisper", "tts", "clip", "stable-diffusion",
    "flux", "moderation", "guard",
)  # fmt: skip
# Parts of names of models that are known to support tools, best first.
_TOOL_MODELS = (
    "gpt-oss", "qwen3", "glm-4", "devstral", "hermes", "qwen2.5", "mistral", "llama3.3",
    "llama-3.3", "llama3.1", "llama-3.1", "granite", "command-r", "nemotron", "kimi", "deepseek",
    "llama3.2", "llama-3.2", "firefunction", "cogito", "lfm",
)  # fmt: skip


class LocalPort(NamedTuple):
    """A port of this machine where a model server usually listens."""

    label: str
    port: int
    path: str  # lists the models
    server: str = ""  # the kind of server, as named in the catalogue


LOCAL_PORTS = (
    LocalPort("Ollama", 11434, "/api/tags", "ollama"),
    LocalPort("LM Studio", 1234, "/v1/models", "lmstudio"),
    LocalPort("llama.cpp", 8080, "/v1/models", "llamacpp"),
    LocalPort("vLLM", 8000, "/v1/models", "vllm"),
)


class LocalServerFound(Value):
    """A detected server and a sentence that tells the user about it."""

    endpoint: Endpoint
    line: str


async def find_local(
    http: HttpClient,
    catalogue: ModelCatalogue,
    *,
    model: str = "",
    ports: tuple[LocalPort, ...] = LOCAL_PORTS,
) -> LocalServerFound | None:
    """Return the first server with a suitable chat model, or with the named one; None if there is
    none."""
    for target, infos in await list_local(http, ports=ports):
        names = [info.id for info in infos]
        chosen = find_name(model, names) if model else choose_model(names)
        if chosen:
            info = next(info for info in infos if info.id == chosen)
            return _describe(target, info, catalogue)
    return None


async def list_local(
    http: HttpClient, *, ports: tuple[LocalPort, ...] = LOCAL_PORTS
) -> list[tuple[LocalPort, tuple[ModelInfo, ...]]]:
    """Return the model servers that run here, with their models. Probes only this machine, all
    ports at once; where nothing listens this costs a few refused connections."""
    async with asyncio.TaskGroup() as group:
        opening = [group.create_task(_port_is_open(target.port)) for target in ports]
    open_ports = [target for target, task in zip(ports, opening, strict=True) if task.result()]
    if not open_ports:
        return []
    http.preload_certificates(f"http://{HOST}")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_models(http, target)) for target in open_ports]
    answers = zip(open_ports, tasks, strict=True)
    return [(target, task.result()) for target, task in answers if task.result()]


def accepts_connections(url: str) -> bool:
    """Return whether something accepts connections at a local address."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or HOST, port), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def dead_server_message(url: str) -> str:
    return f"No server answers at {url}; start it, or choose another model with `hermes model`."


async def first_model(http: HttpClient, endpoint: Endpoint) -> str:
    """Return the most suitable chat model of this endpoint; raise ConfigError when it lists
    none."""
    try:
        infos = await list_models(http, endpoint)
    except ProviderError as error:
        if error.status is None and endpoint.is_local:
            raise ConfigError(dead_server_message(endpoint.url)) from error
        if error.status is None:
            raise
        infos = ()
    model = choose_model([info.id for info in infos if info.tools is not False])
    if not model:
        raise ConfigError(
            f"{endpoint.host} lists no model{_only_small(infos)}; choose one with -m."
        )
    return model


def _only_small(infos: tuple[ModelInfo, ...]) -> str:
    return " of 1B parameters or more" if infos else ""


def choose_model(models: list[str]) -> str:
    """Return the model most likely to chat and to call tools; "" if there is none. Models under
    1B parameters are too small for tools, so they are never chosen without being named."""
    able = [
        model
        for model in models
        if not any(word in model.lower() for word in _UNSUITABLE)
        and (parameters_in_name(model) or 1e9) >= 1e9
    ]
    return min(able, key=_rank, default="")


def find_name(model: str, names: list[str]) -> str:
    """Return the listed name of a model, with or without the tag `latest`; "" if not listed."""
    wanted = (model.lower(), f"{model.lower()}:latest")
    return next((name for name in names if name.lower() in wanted), "")


def parameters_in_name(model: str) -> float:
    """Return the number of parameters that a name such as `qwen3:0.6b` states; 0 if none."""
    found = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", model.lower())
    return float(found[1]) * (1e9 if found[2] == "b" else 1e6) if found else 0.0


def _rank(model: str) -> int:
    name = model.lower()
    return next(
        (position for position, word in enumerate(_TOOL_MODELS) if word in name), len(_TOOL_MODELS)
    )


async def _port_is_open(port: int) -> bool:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _models(http: HttpClient, target: LocalPort) -> tuple[ModelInfo, ...]:
    """Return the models there; empty if it is not a model server."""
    ask = ServerQuery(http, f"http://{HOST}:{target.port}", seconds=_ANSWER_SECONDS)
    return read_listing(await ask.get(target.path))


def _describe(target: LocalPort, info: ModelInfo, catalogue: ModelCatalogue) -> LocalServerFound:
    vendor = catalogue.vendors["custom"]
    url = f"http://{HOST}:{target.port}/v1"
    endpoint = catalogue.endpoint(vendor, info.id, url=url, info=info, server=target.server)
    known = _rank(info.id) < len(_TOOL_MODELS)
    doubt = "" if known else " It may not support tools."
    return LocalServerFound(
        endpoint=endpoint,
        line=f"Using {info.id} on the {target.label} server at {HOST}:{target.port}; nothing"
        f" leaves this machine.{doubt}",
    )
