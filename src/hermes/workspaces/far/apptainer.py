"""Connects to an instance of Apptainer or Singularity."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.confinement.protection import ConfinementReport
from hermes.workspaces.far.blocking import run_blocking
from hermes.workspaces.far.machine import BASH
from hermes.workspaces.far.program import run_local_program
from hermes.workspaces.files import find_program
from hermes.workspaces.limits import ResourceLimits

_START_SECONDS = 900.0
_STEP_SECONDS = 60.0


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
                (program, "instance", "list", self._name), self._env, timeout=_STEP_SECONDS
            )
            if self._name not in found.out:
                words = (program, "instance", "start", *self._options())
                started = await run_local_program(
                    (*words, self._settings.image, self._name), self._env, timeout=_START_SECONDS
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
            await run_local_program(words, self._env, timeout=_STEP_SECONDS)
