"""Connects to Docker, Podman and Apptainer containers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.files import find_program
from hermes.workspaces.process_tree import identity
from hermes.workspaces.remote.calls import BASH
from hermes.workspaces.remote.cli import ProgramResult, run_blocking, run_local_program
from hermes.workspaces.runner import ResourceLimits

WORKSPACE = "/workspace"
LABEL = "hermes.session"
OWNER = "hermes.owner"

_START_SECONDS = 600.0
_STEP_SECONDS = 60.0
# Reaps orphans and stops at once when asked.
_FIRST_PROCESS = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")


class ContainerSettings(Value):
    """`mount` is a local folder that becomes the workspace; "" mounts nothing, so that nothing of
    this machine is reachable. A container that is not `persistent` is removed with its session.
    `engine_options` come before the engine's command, `extra` ones before the image."""

    image: str = "nikolaik/python-nodejs:python3.11-nodejs20"
    engine: Literal["", "docker", "podman"] = ""
    persistent: bool = True
    network: bool = True
    mount: str = ""
    volumes: tuple[str, ...] = ()
    as_host_user: bool = False
    limits: ResourceLimits = ResourceLimits(cpus=1, memory_mb=5120, processes=256)
    tmp_mb: int = 512
    engine_options: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


class ContainerConnection:
    def __init__(self, settings: ContainerSettings, key: str, env: Mapping[str, str]) -> None:
        self._settings = settings
        self._env = env
        self._key = key
        self._name = "hermes-" + re.sub(r"[^A-Za-z0-9_.-]", "-", key)
        self._runs = False
        self._opening = asyncio.Lock()

    @property
    def protection(self) -> ConfinementReport:
        settings = self._settings
        shared = [path for path in (settings.mount, *settings.volumes) if path]
        network = "the network is open" if settings.network else "no network"
        return ConfinementReport(
            kind="container",
            details=(
                f"commands run in a container of {settings.image}",
                f"capabilities dropped but {', '.join(_CAPABILITIES)}; no new privileges; "
                f"{network}",
                f"limits: {_describe_limits(settings.limits)}",
            ),
            gaps=tuple(f"{path} of this machine is mounted" for path in shared),
        )

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def words(self) -> tuple[str, ...]:
        return (*self._engine(), "exec", "-i", self._name, *BASH)

    def _engine(self) -> tuple[str, ...]:
        search_path = self._env.get("PATH", os.defpath)
        names = (self._settings.engine,) if self._settings.engine else ("docker", "podman")
        for name in names:
            if program := find_program(name, search_path):
                return (program, *self._settings.engine_options)
        raise ToolError(
            f"{' or '.join(names)} is not installed. Ask the user to install it or to choose "
            "another terminal.backend."
        )

    async def open(self) -> None:
        if self._runs:
            return
        async with self._opening:
            if not self._runs:
                await self._remove_orphans()
                await self._start()
                self._runs = True

    def open_now(self) -> None:
        if not self._runs:
            run_blocking(self.open)

    async def _start(self) -> None:
        engine = self._engine()
        asked = (*engine, "container", "inspect", "-f", "{{.State.Running}}", self._name)
        found = await run_local_program(asked, self._env, timeout=_STEP_SECONDS)
        if found.code == 0 and found.out == "true":
            return
        if found.code:
            started = await self._run(engine, disk=True)
            if started.code and self._settings.limits.disk_mb and _is_quota_error(started.errors):
                started = await self._run(engine, disk=False)
        else:
            words = (*engine, "start", self._name)
            started = await run_local_program(words, self._env, timeout=_START_SECONDS)
        if started.code:
            last = started.errors.splitlines()[-1:] or ["no reason given"]
            raise ToolError(f"The container cannot be started: {last[0]}")

    async def _run(self, engine: tuple[str, ...], *, disk: bool) -> ProgramResult:
        words = (*engine, "run", "-d", *self._options(disk=disk), self._settings.image)
        words = (*words, "bash", "-c", _FIRST_PROCESS)
        return await run_local_program(words, self._env, timeout=_START_SECONDS)

    def _options(self, *, disk: bool = True) -> Iterator[str]:
        settings, limits = self._settings, self._settings.limits
        yield from ("--name", self._name, "--hostname", "hermes", "--workdir", WORKSPACE)
        yield from ("--label", f"{LABEL}={self._key}")
        if not settings.persistent:
            yield from ("--label", f"{OWNER}={os.getpid()}|{identity(os.getpid())}", "--rm")
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        for capability in _CAPABILITIES:
            yield from ("--cap-add", capability)
        yield from ("--tmpfs", f"/tmp:rw,nosuid,nodev,exec,size={settings.tmp_mb}m")
        yield from ("--pids-limit", str(limits.processes or 256))
        if limits.memory_mb:
            yield from ("--memory", f"{limits.memory_mb}m")
        if limits.cpus:
            yield from ("--cpus", f"{limits.cpus:g}")
        if limits.disk_mb and disk:
            yield from ("--storage-opt", f"size={limits.disk_mb}m")
        if not settings.network:
            yield "--network=none"
        if settings.as_host_user:
            yield from ("--user", f"{os.getuid()}:{os.getgid()}")
        yield from ("-v", f"{settings.mount}:{WORKSPACE}" if settings.mount else WORKSPACE)
        for volume in settings.volumes:
            yield from ("-v", volume)
        yield from settings.extra

    async def _remove_orphans(self) -> None:
        """Remove single-session containers whose Hermes died."""
        engine = self._engine()
        shown = '{{.Names}} {{.Label "' + OWNER + '"}}'
        if "podman" in engine[0]:
            shown = '{{.Names}} {{index .Labels "' + OWNER + '"}}'
        listing = (*engine, "ps", "-a", "--filter", f"label={OWNER}", "--format", shown)
        listed = await run_local_program(listing, self._env, timeout=_STEP_SECONDS)
        for line in listed.out.splitlines():
            name, _, owner = line.partition(" ")
            pid, _, who = owner.partition("|")
            if pid.isdecimal() and identity(int(pid)) != who:
                await run_local_program(
                    (*engine, "rm", "-f", "-v", name), self._env, timeout=_STEP_SECONDS
                )

    async def hibernate(self) -> None:
        """A persistent container keeps its files, but stops all processes."""
        if self._runs:
            self._runs = False
            await run_local_program(
                (*self._engine(), "stop", "-t", "1", self._name), self._env, timeout=60
            )

    async def close(self, *, keep: bool = False) -> None:
        """A container with processes that shall run on is left alone."""
        if not self._runs or (keep and self._settings.persistent):
            return
        self._runs = False
        how = ("stop", "-t", "1") if self._settings.persistent else ("rm", "-f", "-v")
        await run_local_program(
            (*self._engine(), *how, self._name), self._env, timeout=_STEP_SECONDS
        )


def _is_quota_error(errors: str) -> bool:
    """Only few file systems support quotas, and only if their administrator enabled them."""
    return any(word in errors.lower() for word in ("storage-opt", "storage opt", "quota"))


def _describe_limits(limits: ResourceLimits) -> str:
    words = [f"{limits.processes or 256} processes"]
    words += [f"{limits.memory_mb} MB memory"] if limits.memory_mb else []
    words += [f"{limits.cpus:g} processors"] if limits.cpus else []
    return ", ".join(words)


_APPTAINER_START_SECONDS = 900.0
_APPTAINER_STEP_SECONDS = 60.0


class ApptainerSettings(Value):
    """With `persistent`, changes are kept in a folder below `scratch`, else in memory. `binds` are
    folders of this machine, `source:target`."""

    image: str = "docker://nikolaik/python-nodejs:python3.11-nodejs20"
    persistent: bool = True
    scratch: str = ""
    binds: tuple[str, ...] = ()
    network: bool = True
    limits: ResourceLimits = ResourceLimits()


class ApptainerConnection:
    def __init__(
        self, settings: ApptainerSettings, key: str, folder: Path, env: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._env = env
        self._name = "hermes-" + re.sub(r"[^A-Za-z0-9_-]", "-", key)
        self._overlay = Path(settings.scratch or folder) / f"{self._name}-overlay"
        self._runs = False
        self._opening = asyncio.Lock()

    @property
    def protection(self) -> ConfinementReport:
        return ConfinementReport(
            kind="container",
            details=(
                f"commands run in an instance of {self._settings.image}",
                "no home folder, no environment and no device of this machine",
            ),
            gaps=tuple(f"{bind} of this machine is mounted" for bind in self._settings.binds),
        )

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def words(self) -> tuple[str, ...]:
        """Repeat the options of the instance: without them, a joining command gets the variables of
        this machine, and root all its rights."""
        options = ("--cleanenv", "--no-privs", "--pwd", "/")
        instance = f"instance://{self._name}"
        return (self._program(), "--silent", "exec", *options, instance, *BASH)

    def _program(self) -> str:
        for name in ("apptainer", "singularity"):
            if program := find_program(name, self._env.get("PATH", os.defpath)):
                return program
        raise ToolError(
            "Neither apptainer nor singularity is installed. Ask the user to install one or to "
            "choose another terminal.backend."
        )

    async def open(self) -> None:
        async with self._opening:
            if self._runs:
                return
            program = self._program()
            found = await run_local_program(
                (program, "instance", "list", self._name),
                self._env,
                timeout=_APPTAINER_STEP_SECONDS,
            )
            if self._name not in found.out:
                words = (program, "instance", "start", *self._options())
                started = await run_local_program(
                    (*words, self._settings.image, self._name),
                    self._env,
                    timeout=_APPTAINER_START_SECONDS,
                )
                if started.code:
                    last = started.errors.splitlines()[-1:] or ["no reason given"]
                    raise ToolError(f"The instance cannot be started: {last[0]}")
            self._runs = True

    def open_now(self) -> None:
        if not self._runs:
            run_blocking(self.open)

    def _options(self) -> Iterator[str]:
        settings, limits = self._settings, self._settings.limits
        yield from ("--containall", "--cleanenv", "--no-home", "--no-privs")
        if settings.persistent:
            self._overlay.mkdir(parents=True, exist_ok=True, mode=0o700)
            yield from ("--overlay", str(self._overlay))
        else:
            yield "--writable-tmpfs"
        if not settings.network:
            yield from ("--net", "--network", "none")
        for bind in settings.binds:
            yield from ("--bind", bind)
        if limits.memory_mb:
            yield from ("--memory", f"{limits.memory_mb}M")
        if limits.cpus:
            yield from ("--cpus", f"{limits.cpus:g}")
        if limits.processes:
            yield from ("--pids-limit", str(limits.processes))

    async def hibernate(self) -> None:
        await self.close()

    async def close(self, *, keep: bool = False) -> None:
        if self._runs and not keep:
            self._runs = False
            words = (self._program(), "instance", "stop", self._name)
            await run_local_program(words, self._env, timeout=_APPTAINER_STEP_SECONDS)
