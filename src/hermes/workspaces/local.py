"""The workspace on this machine: its files, shell, processes and search."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.effects import RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import (
    CommandResult,
    FileInfo,
    ProcessInfo,
    SearchQuery,
    SearchResult,
    ShellSetup,
)
from hermes.core.world import World
from hermes.workspaces import files
from hermes.workspaces.confinement.sandbox import Confinement, Sandbox
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.keeper import LocalKeeper
from hermes.workspaces.local_runner import LocalRunner
from hermes.workspaces.processes import ProcessLimits, SessionProcesses
from hermes.workspaces.search.matches import EngineName, SearchLimits
from hermes.workspaces.shell import Shell, ShellSettings, Sudo

if TYPE_CHECKING:
    from hermes.workspaces.search.local import LocalSearch

# The grant that lifts the confinement of a command.
ANYWHERE = "/"


class LocalWorkspace:
    """Implements the port for one session. `state` is a session folder for snapshots, logs and
    scratch files; `env` is the start environment of commands, without secrets. `secret_env` are
    secrets that commands may use at that moment; none is stored. The command runtime is created
    with the first command, because many sessions run none."""

    def __init__(
        self,
        root: str,
        *,
        state: Path,
        world: World,
        env: Mapping[str, str],
        shell: ShellSettings | None = None,
        engine: EngineName | None = None,
        limits: SearchLimits | None = None,
        process_limits: ProcessLimits | None = None,
        confinement: Confinement | None = None,
        sudo: Sudo | None = None,
        secret_env: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._root = os.path.realpath(root)
        self._state = state
        self._env = env
        self._engine: EngineName | None = engine
        self._limits = limits
        self._new_works = partial(
            CommandRuntime,
            self._root,
            state,
            world,
            env,
            shell or ShellSettings(),
            process_limits,
            confinement or Confinement(),
            sudo,
            secret_env,
        )

    @cached_property
    def _runtime(self) -> CommandRuntime:
        return self._new_works()

    @cached_property
    def _searching(self) -> LocalSearch:
        from hermes.workspaces.search.local import LocalSearch  # many sessions never search

        limits = self._limits or SearchLimits()
        return LocalSearch(self._env, engine=self._engine, limits=limits)

    @property
    def root(self) -> str:
        return self._root

    @property
    def cwd(self) -> str:
        return self._runtime.shell.cwd

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def shell(self) -> ShellSetup:
        return self._runtime.shell.setup

    @property
    def processes(self) -> SessionProcesses:
        return self._runtime.processes

    def resolve(self, path: str) -> str:
        if "\0" in path:
            raise ToolError("A path cannot contain a NUL byte.")
        home = self._runtime.shell.variable("HOME") or self._env.get("HOME", "/")
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        elif path.startswith("~"):
            path = str(_resolve_other_home(path))
        return os.path.realpath(Path(self.cwd, path))

    async def protection(self) -> ConfinementReport:
        """Return how commands are confined now."""
        return await asyncio.to_thread(self._runtime.sandbox.protection)

    def grant_network(self, granted: bool = True) -> None:
        """Grant or deny the network to the next commands of this session."""
        self._runtime.sandbox.grant_network(granted)

    async def stat(self, path: str) -> FileInfo | None:
        return await asyncio.to_thread(files.file_info, path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        return await asyncio.to_thread(files.list_folder, path)

    async def read_bytes(self, path: str) -> bytes:
        return await asyncio.to_thread(files.read_file, path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await asyncio.to_thread(files.write_file, path, data)

    async def delete(self, path: str) -> None:
        await asyncio.to_thread(files.delete_file, path)

    async def search(self, query: SearchQuery) -> SearchResult:
        return await self._searching.find(query)

    async def run(
        self,
        effect: RunCommand,
        *,
        timeout: float,
        stop: asyncio.Event,
        max_bytes: int,
        pty: bool = False,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        return await self._runtime.shell.run(
            effect.script,
            effect.cwd,
            timeout=timeout,
            stop=stop,
            max_bytes=max_bytes,
            pty=pty,
            on_output=on_output,
            unconfined=ANYWHERE in effect.grants,
        )

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo:
        return await self._runtime.processes.spawn(
            effect.script,
            effect.cwd,
            notify=notify,
            watch=watch,
            pty=pty,
            unconfined=ANYWHERE in effect.grants,
        )

    async def scratch(self, name: str, data: bytes) -> str:
        path = self._state.absolute() / "scratch" / name.replace("/", "_").lstrip(".")
        await asyncio.to_thread(files.write_file, str(path), data)
        return str(path)

    async def close(self) -> None:
        """End leftovers of foreground commands. Background processes run on, and the next workspace
        with this state folder takes them over."""
        if "_runtime" in self.__dict__:
            await self._runtime.processes.release()
            await self._runtime.shell.close()


class CommandRuntime:
    """Runs commands: the sandbox, the shell in it, and its background processes."""

    def __init__(
        self,
        root: str,
        state: Path,
        world: World,
        env: Mapping[str, str],
        settings: ShellSettings,
        process_limits: ProcessLimits | None,
        confinement: Confinement,
        sudo: Sudo | None,
        secret_env: Callable[[], Mapping[str, str]],
    ) -> None:
        state = state.absolute()
        self.sandbox = Sandbox(confinement, root, state, env)
        # Definitions of confined commands must not run unconfined later.
        folder = state / ("shell-confined" if self.sandbox.wanted else "shell")
        runner = LocalRunner(
            folder,
            world=world,
            env=env,
            sandbox=self.sandbox,
            program=settings.program,
            secret_env=secret_env,
        )
        self.shell = Shell(root, folder, runner=runner, settings=settings, sudo=sudo)
        self.processes = SessionProcesses(
            state / "processes",
            shell=self.shell,
            keeper=LocalKeeper(runner, preface=settings.limits.in_bash()),
            world=world,
            limits=process_limits,
        )


def _resolve_other_home(path: str) -> Path:
    """Look up `~name/…` in the user database."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
