"""Finds the ways to a model that this machine already has, and recommends one of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError, HermesError
from hermes.models.machine import (
    USEFUL_SPEED,
    Machine,
    bytes_of,
    find_gguf_files,
    parse_ollama_host,
)
from hermes.models.model_ref import CUSTOM, EMBEDDED, IN_PROCESS, ModelRef
from hermes.models.models import Models
from hermes.models.ranking import Candidate
from hermes.providers.local_discovery import (
    HOST,
    LOCAL_PORTS,
    LocalPort,
    choose_model,
    first_model,
    list_local,
    parameters_in_name,
)
from hermes.providers.model_listing import ModelInfo

SMALL = 1_000_000_000


class DetectedModel(Value):
    """A model that could be used now. Size and speed are known only for models that run on this
    machine; the speed is an estimate (see `Machine.tokens_per_second`)."""

    kind: Literal["key", "server", "file"]
    provider: str
    model: str
    # Where it was found.
    found: str
    base_url: str = ""
    parameters: int = 0
    bytes: int = 0
    tokens_per_second: float | None = None
    # Why it is not recommended; "" for a good choice.
    problem: str = ""
    recommended: bool = False
    # The command that makes it the default.
    command: str = ""


class Detection(Value):
    """What was found, best first, and what this machine could run."""

    machine: Machine
    models: tuple[DetectedModel, ...]
    advice: str


async def detect_models(
    models: Models,
    env: Mapping[str, str],
    *,
    folder: Path,
    machine: Machine | None = None,
    ports: tuple[LocalPort, ...] = LOCAL_PORTS,
) -> Detection:
    """Look for keys and logins, servers on this machine, and GGUF files in the usual folders.
    Contacts only this machine and a server whose address is configured."""
    machine = machine or Machine.read()
    found = [
        *await _from_candidates(models),
        *await _from_servers(models, machine, _ports(env, ports)),
        *_from_files(models, machine, env, folder),
    ]
    first = next((each for each in found if not each.problem), None)
    marked = [replace(each, recommended=each is first) for each in found]
    marked.sort(key=lambda each: (not each.recommended, bool(each.problem)))
    return Detection(machine=machine, models=tuple(marked), advice=machine.advice())


async def _from_candidates(models: Models) -> list[DetectedModel]:
    """Return the providers whose key, login or address is there, in the order of precedence."""
    found: dict[str, DetectedModel] = {}
    for candidate in models.resolver.candidates():
        if candidate.provider not in (*IN_PROCESS, *found):
            found[candidate.provider] = await _describe_candidate(models, candidate)
    return list(found.values())


async def _describe_candidate(models: Models, candidate: Candidate) -> DetectedModel:
    provider, model, problem = candidate.provider, "", ""
    try:
        entry = models.resolver.providers.get(provider)
        endpoint = models.resolver.endpoint(ModelRef(provider=provider))
        model = entry.default_model or await first_model(models.http, endpoint)
    except HermesError as error:
        problem = str(error)
    row = DetectedModel(
        kind="server" if provider == CUSTOM else "key",
        provider=provider,
        model=model,
        found=candidate.why,
        problem=problem,
    )
    return row if problem else replace(row, command=choose_command(row))


async def _from_servers(
    models: Models, machine: Machine, ports: tuple[LocalPort, ...]
) -> list[DetectedModel]:
    rows = []
    for port, infos in await list_local(models.http, ports=ports):
        best = choose_model([info.id for info in infos])
        ordered = sorted(infos, key=lambda info: info.id != best)
        rows += [_describe_served(machine, port, info) for info in ordered]
    return rows


def _describe_served(machine: Machine, port: LocalPort, info: ModelInfo) -> DetectedModel:
    parameters = info.parameters or int(parameters_in_name(info.id))
    size = info.bytes or bytes_of(parameters)
    standard = port in LOCAL_PORTS
    row = DetectedModel(
        kind="server",
        provider=port.server if standard else CUSTOM,
        model=info.id,
        found=f"{port.label} at {HOST}:{port.port}",
        base_url="" if standard else f"http://{HOST}:{port.port}/v1",
        parameters=parameters,
        bytes=size,
        tokens_per_second=machine.tokens_per_second(size),
        problem=_problem(machine, parameters, size) or _unsuitable(info.id),
    )
    return replace(row, command=choose_command(row))


def _from_files(
    models: Models, machine: Machine, env: Mapping[str, str], folder: Path
) -> list[DetectedModel]:
    """Return the model files, the largest that runs at a useful speed first."""
    from hermes.providers.embedded.model_file import describe_model_file

    rows = []
    for path in find_gguf_files(env, folder, models.home.models):
        try:
            file = describe_model_file(path)
        except ConfigError:
            continue  # not a chat model, or incomplete
        row = DetectedModel(
            kind="file",
            provider=EMBEDDED,
            model=str(file.path),
            found=str(path.parent),
            parameters=file.parameters,
            bytes=file.size,
            tokens_per_second=machine.tokens_per_second(file.size),
            problem=_problem(machine, file.parameters, file.size),
        )
        rows.append(replace(row, command=choose_command(row)))
    return sorted(rows, key=_file_rank)


def _file_rank(row: DetectedModel) -> tuple[bool, bool, int]:
    slow = (row.tokens_per_second or 0) < USEFUL_SPEED
    return bool(row.problem), slow, row.bytes if slow else -row.bytes


def _problem(machine: Machine, parameters: int, size: int) -> str:
    if parameters and parameters < SMALL:
        return "has less than 1B parameters, too few for tools"
    if not machine.fits(size):
        return "needs more memory than this machine has"
    return ""


def _unsuitable(name: str) -> str:
    return "" if choose_model([name]) else "is not a chat model of this machine"


def choose_command(row: DetectedModel) -> str:
    """Return the command that makes this model the default."""
    words = ["hermes", "model", "set", row.model]
    words += ["--base-url", row.base_url] if row.base_url else ["--provider", row.provider]
    return shlex.join(words)


def _ports(env: Mapping[str, str], ports: tuple[LocalPort, ...]) -> tuple[LocalPort, ...]:
    """Return the ports to probe, with the one of OLLAMA_HOST if it is on this machine."""
    port = parse_ollama_host(env.get("OLLAMA_HOST", ""))
    if not port or any(each.port == port for each in ports):
        return ports
    return (LocalPort("Ollama", port, "/api/tags", "ollama"), *ports)
