"""Connects to Docker, Podman and Apptainer containers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.config.execution_settings import TerminalSettings
from hermes.core.errors import ToolError
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.files import find_program
from hermes.workspaces.process_tree import identity
from hermes.workspaces.remote.calls import BASH
from hermes.workspaces.remote.cli import CliMachine, ProgramResult, run_blocking, run_local_program

WORKSPACE = "/workspace"
PROCESSES = 256
LABEL = "hermes.session"
OWNER = "hermes.owner"

# The first start may load an image.
_START_SECONDS = 900.0
_STEP_SECONDS = 60.0
# Reaps orphans and stops at once when asked.
_FIRST_PROCESS = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
_TEMPORARY_MB = 512
_QUOTA_WORDS = ("storage-opt", "storage opt", "quota")
_HINT = re.compile(r"(?i)(see|run) '.*--help'|usage:")
_ERROR = re.compile(r"(?i)^(docker|podman|error|fatal)\b.*:|error response|cannot connect")
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")


def _reason(errors: str) -> str:
    """Return the line that says what is wrong: engines end with a hint about their options, and
    begin with the progress of a download."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    lines = [line for line in lines if not _HINT.match(line)]
    named = [line for line in lines if _ERROR.search(line)]
    return (named or lines or ["no reason given"])[-1]


class _EngineMachine(CliMachine):
    """A container that a local program starts and stops: the first of `programs` that is
    installed."""

    def __init__(self, programs: tuple[str, ...], env: Mapping[str, str]) -> None:
        super().__init__(env)
        self._programs = programs
        self._runs = False
        self._opening = asyncio.Lock()

    def _program(self) -> str:
        for name in self._programs:
            if program := find_program(name, self._env.get("PATH", os.defpath)):
                return program
        raise ToolError(
            f"{' or '.join(self._programs)} is not installed. Ask the user to install it or to "
            "choose another terminal.backend."
        )

    async def open(self) -> None:
        if self._runs:
            return
        async with self._opening:
            if not self._runs:
                started = await self._start()
                if started and started.code:
                    raise ToolError(f"The container cannot be started: {_reason(started.errors)}")
                self._runs = True

    def open_now(self) -> None:
        if not self._runs:
            run_blocking(self.open)

    async def _start(self) -> ProgramResult | None:
        """Start the container; None if it runs already."""
        raise NotImplementedError

    async def _do(self, *argv: str, timeout: float = _STEP_SECONDS) -> ProgramResult:
        return await run_local_program(argv, self._env, timeout=timeout)


class ContainerMachine(_EngineMachine):
    """A container. Without a mount, nothing of this machine is reachable. A container that is not
    persistent is removed with its session."""

    def __init__(self, terminal: TerminalSettings, key: str, env: Mapping[str, str]) -> None:
        podman = terminal.backend == "podman"
        super().__init__(("podman",) if podman else ("docker", "podman"), env)
        self._terminal = terminal
        self._mount = str(Path.cwd()) if terminal.docker_mount_cwd_to_workspace else ""
        self._key = key
        self._name = "hermes-" + re.sub(r"[^A-Za-z0-9_.-]", "-", key)

    @property
    def protection(self) -> ConfinementReport:
        terminal = self._terminal
        shared = [path for path in (self._mount, *terminal.docker_volumes) if path]
        network = "the network is open" if terminal.docker_network else "no network"
        limits = [f"{PROCESSES} processes"]
        limits += [f"{terminal.container_memory} MB memory"] if terminal.container_memory else []
        limits += [f"{terminal.container_cpu:g} processors"] if terminal.container_cpu else []
        return ConfinementReport(
            kind="container",
            details=(
                f"commands run in a container of {terminal.docker_image}",
                f"capabilities dropped but {', '.join(_CAPABILITIES)}; no new privileges; "
                f"{network}",
                f"limits: {', '.join(limits)}",
            ),
            gaps=tuple(f"{path} of this machine is mounted" for path in shared),
        )

    @property
    def argv(self) -> tuple[str, ...]:
        return (*self._engine(), "exec", "-i", self._name, *BASH)

    def _engine(self) -> tuple[str, ...]:
        return (self._program(), *self._terminal.docker_engine_args)

    async def _start(self) -> ProgramResult | None:
        await self._remove_orphans()
        engine = self._engine()
        found = await self._do(
            *engine, "container", "inspect", "-f", "{{.State.Running}}", self._name
        )
        if found.code == 0 and found.out == "true":
            return None
        if found.code == 0:
            return await self._do(*engine, "start", self._name, timeout=_START_SECONDS)
        started = await self._run(engine, disk=True)
        # Only few file systems support quotas, and only if their administrator enabled them.
        quota = any(word in started.errors.lower() for word in _QUOTA_WORDS)
        if started.code and self._terminal.container_disk and quota:
            started = await self._run(engine, disk=False)
        return started

    async def _run(self, engine: tuple[str, ...], *, disk: bool) -> ProgramResult:
        argv = (*engine, "run", "-d", *self._options(disk=disk), self._terminal.docker_image)
        return await self._do(*argv, "bash", "-c", _FIRST_PROCESS, timeout=_START_SECONDS)

    def _options(self, *, disk: bool = True) -> Iterator[str]:
        terminal = self._terminal
        yield from ("--name", self._name, "--hostname", "hermes", "--workdir", WORKSPACE)
        yield from ("--label", f"{LABEL}={self._key}")
        if not terminal.container_persistent:
            yield from ("--label", f"{OWNER}={os.getpid()}|{identity(os.getpid())}", "--rm")
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        for capability in _CAPABILITIES:
            yield from ("--cap-add", capability)
        yield from ("--tmpfs", f"/tmp:rw,nosuid,nodev,exec,size={_TEMPORARY_MB}m")
        yield from ("--pids-limit", str(PROCESSES))
        if terminal.container_memory:
            yield from ("--memory", f"{terminal.container_memory}m")
        if terminal.container_cpu:
            yield from ("--cpus", f"{terminal.container_cpu:g}")
        if terminal.container_disk and disk:
            yield from ("--storage-opt", f"size={terminal.container_disk}m")
        if not terminal.docker_network:
            yield "--network=none"
        if terminal.docker_run_as_host_user:
            yield from ("--user", f"{os.getuid()}:{os.getgid()}")
        yield from ("-v", f"{self._mount}:{WORKSPACE}" if self._mount else WORKSPACE)
        for volume in terminal.docker_volumes:
            yield from ("-v", volume)
        yield from terminal.docker_extra_args

    async def _remove_orphans(self) -> None:
        """Remove single-session containers whose Hermes died."""
        engine = self._engine()
        shown = '{{.Names}} {{.Label "' + OWNER + '"}}'
        if "podman" in engine[0]:
            shown = '{{.Names}} {{index .Labels "' + OWNER + '"}}'
        listing = (*engine, "ps", "-a", "--filter", f"label={OWNER}", "--format", shown)
        for line in (await self._do(*listing)).out.splitlines():
            name, _, owner = line.partition(" ")
            pid, _, who = owner.partition("|")
            if pid.isdecimal() and identity(int(pid)) != who:
                await self._do(*engine, "rm", "-f", "-v", name)

    async def hibernate(self) -> None:
        """Stop a persistent container: it keeps its files, but stops all processes."""
        self._close_shells()
        if self._runs:
            self._runs = False
            await self._do(*self._engine(), "stop", "-t", "1", self._name)

    async def close(self, *, keep: bool = False) -> None:
        """Remove the container, unless it has processes that shall run on."""
        self._close_shells()
        if keep and self._terminal.container_persistent:
            return
        if self._terminal.container_persistent:
            await self.hibernate()
        elif self._runs:
            self._runs = False
            await self._do(*self._engine(), "rm", "-f", "-v", self._name)


class ApptainerMachine(_EngineMachine):
    """Changes of a persistent instance are kept in a folder, others in memory."""

    def __init__(
        self, terminal: TerminalSettings, key: str, folder: Path, env: Mapping[str, str]
    ) -> None:
        super().__init__(("apptainer", "singularity"), env)
        self._terminal = terminal
        self._name = "hermes-" + re.sub(r"[^A-Za-z0-9_-]", "-", key)
        self._overlay = Path(terminal.scratch_dir or folder) / f"{self._name}-overlay"

    @property
    def protection(self) -> ConfinementReport:
        return ConfinementReport(
            kind="container",
            details=(
                f"commands run in an instance of {self._terminal.singularity_image}",
                "no home folder, no environment and no device of this machine",
            ),
        )

    @property
    def argv(self) -> tuple[str, ...]:
        """Repeat the options of the instance: without them, a joining command gets the variables of
        this machine, and root all its rights."""
        options = ("--cleanenv", "--no-privs", "--pwd", "/")
        instance = f"instance://{self._name}"
        return (self._program(), "--silent", "exec", *options, instance, *BASH)

    async def _start(self) -> ProgramResult | None:
        program = self._program()
        if self._name in (await self._do(program, "instance", "list", self._name)).out:
            return None
        argv = (
            program,
            "instance",
            "start",
            *self._options(),
            self._terminal.singularity_image,
            self._name,
        )
        return await self._do(*argv, timeout=_START_SECONDS)

    def _options(self) -> Iterator[str]:
        terminal = self._terminal
        yield from ("--containall", "--cleanenv", "--no-home", "--no-privs")
        if terminal.container_persistent:
            self._overlay.mkdir(parents=True, exist_ok=True, mode=0o700)
            yield from ("--overlay", str(self._overlay))
        else:
            yield "--writable-tmpfs"
        if terminal.container_memory:
            yield from ("--memory", f"{terminal.container_memory}M")
        if terminal.container_cpu:
            yield from ("--cpus", f"{terminal.container_cpu:g}")
        yield from ("--pids-limit", str(PROCESSES))

    async def hibernate(self) -> None:
        await self.close()

    async def close(self, *, keep: bool = False) -> None:
        self._close_shells()
        if self._runs and not keep:
            self._runs = False
            await self._do(self._program(), "instance", "stop", self._name)
