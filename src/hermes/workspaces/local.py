"""The workspace on this machine: its files, its shell, its processes and its search."""

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
    SearchFound,
    SearchQuery,
    ShellSetup,
)
from hermes.core.world import World
from hermes.workspaces import files
from hermes.workspaces.confinement.protection import Protection
from hermes.workspaces.confinement.sandbox import Confinement, Sandbox
from hermes.workspaces.keeper import LocalKeeper
from hermes.workspaces.local_runner import LocalRunner
from hermes.workspaces.processes import ProcessLimits, SessionProcesses
from hermes.workspaces.search.limits import EngineName, SearchLimits
from hermes.workspaces.shell import Shell, ShellSettings
from hermes.workspaces.sudo import Sudo

if TYPE_CHECKING:
    from hermes.workspaces.search.local import LocalSearch

# The grant with which nothing confines a command.
ANYWHERE = "/"


class LocalWorkspace:
    """Fulfils the port for one session. `state` is a folder of the session's own for snapshots,
    logs and scratch files; `env` is what commands start from, secrets removed by the caller. `lent`
    are secrets that they may use all the same at that moment; no trace of them is kept. What runs
    commands is made with the first of them: most sessions of a server run none."""

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
        lent: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._root = os.path.realpath(root)
        self._state = state
        self._env = env
        self._engine: EngineName | None = engine
        self._limits = limits
        self._new_works = partial(
            _Works,
            self._root,
            state,
            world,
            env,
            shell or ShellSettings(),
            process_limits,
            confinement or Confinement(),
            sudo,
            lent,
        )

    @cached_property
    def _works(self) -> _Works:
        return self._new_works()

    @cached_property
    def _searching(self) -> LocalSearch:
        from hermes.workspaces.search.local import LocalSearch  # many sessions search nothing

        limits = self._limits or SearchLimits()
        return LocalSearch(self._env, engine=self._engine, limits=limits)

    @property
    def root(self) -> str:
        return self._root

    @property
    def cwd(self) -> str:
        return self._works.shell.cwd

    @property
    def far(self) -> bool:
        return False

    @property
    def shell(self) -> ShellSetup:
        return self._works.shell.setup

    @property
    def processes(self) -> SessionProcesses:
        return self._works.processes

    def resolve(self, path: str) -> str:
        if "\0" in path:
            raise ToolError("A path cannot hold a NUL byte.")
        home = self._works.shell.variable("HOME") or self._env.get("HOME", "/")
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        elif path.startswith("~"):
            path = str(_another_home(path))
        return os.path.realpath(Path(self.cwd, path))

    async def protection(self) -> Protection:
        """What stands between commands and this machine now."""
        return await asyncio.to_thread(self._works.sandbox.protection)

    def grant_network(self, granted: bool = True) -> None:
        """For the next commands of this session."""
        self._works.sandbox.grant_network(granted)

    async def stat(self, path: str) -> FileInfo | None:
        return await asyncio.to_thread(files.info_of, path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        return await asyncio.to_thread(files.list_folder, path)

    async def read_bytes(self, path: str) -> bytes:
        return await asyncio.to_thread(files.read_file, path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await asyncio.to_thread(files.write_file, path, data)

    async def delete(self, path: str) -> None:
        await asyncio.to_thread(files.delete_file, path)

    async def search(self, query: SearchQuery) -> SearchFound:
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
        return await self._works.shell.run(
            effect.script,
            effect.cwd,
            timeout=timeout,
            stop=stop,
            max_bytes=max_bytes,
            pty=pty,
            on_output=on_output,
            free=ANYWHERE in effect.grants,
        )

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo:
        return await self._works.processes.spawn(
            effect.script,
            effect.cwd,
            notify=notify,
            watch=watch,
            pty=pty,
            free=ANYWHERE in effect.grants,
        )

    async def scratch(self, name: str, data: bytes) -> str:
        path = self._state.absolute() / "scratch" / name.replace("/", "_").lstrip(".")
        await asyncio.to_thread(files.write_file, str(path), data)
        return str(path)

    async def close(self) -> None:
        """Ends what foreground commands left behind. Background processes run on and are taken
        up again by the next workspace with this state folder."""
        if "_works" in self.__dict__:
            await self._works.processes.shut()
            await self._works.shell.close()


class _Works:
    """What runs commands: the sandbox, the shell in it, and the processes that shells leave."""

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
        lent: Callable[[], Mapping[str, str]],
    ) -> None:
        state = state.absolute()
        self.sandbox = Sandbox(confinement, root, state, env)
        # What confined commands define is not to be run by others later.
        folder = state / ("shell-confined" if self.sandbox.wanted else "shell")
        runner = LocalRunner(
            folder,
            world=world,
            env=env,
            sandbox=self.sandbox,
            program=settings.program,
            lent=lent,
        )
        self.shell = Shell(root, folder, runner=runner, settings=settings, sudo=sudo)
        self.processes = SessionProcesses(
            state / "processes",
            shell=self.shell,
            keeper=LocalKeeper(runner, preface=settings.limits.in_bash()),
            world=world,
            limits=process_limits,
        )


def _another_home(path: str) -> Path:
    """`~name/…`, looked up in the user database."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
