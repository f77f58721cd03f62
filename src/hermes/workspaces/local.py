"""The workspace on this machine: its files, its shell, its processes and its search."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
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
    are secrets that they may use all the same at that moment; no trace of them is kept."""

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
        self._state = state = state.absolute()
        self._home = env.get("HOME", "/")
        self._sandbox = Sandbox(confinement or Confinement(), self._root, state, env)
        # What confined commands define is not to be run by others later.
        folder = state / ("shell-confined" if self._sandbox.wanted else "shell")
        settings = shell or ShellSettings()
        self._runner = runner = LocalRunner(
            folder,
            world=world,
            env=env,
            sandbox=self._sandbox,
            program=settings.program,
            lent=lent,
        )
        self._shell = Shell(self._root, folder, runner=runner, settings=settings, sudo=sudo)
        self._processes = SessionProcesses(
            state / "processes",
            shell=self._shell,
            keeper=LocalKeeper(runner, preface=settings.limits.in_bash()),
            world=world,
            limits=process_limits,
        )
        self._searching: LocalSearch | None = None
        self._new_search = partial(_search, env, engine, limits or SearchLimits())

    @property
    def root(self) -> str:
        return self._root

    @property
    def cwd(self) -> str:
        return self._shell.cwd

    @property
    def far(self) -> bool:
        return False

    @property
    def shell(self) -> ShellSetup:
        return self._shell.setup

    @property
    def processes(self) -> SessionProcesses:
        return self._processes

    def resolve(self, path: str) -> str:
        if "\0" in path:
            raise ToolError("A path cannot hold a NUL byte.")
        home = self._shell.variable("HOME") or self._home
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        elif path.startswith("~"):
            path = str(_another_home(path))
        return os.path.realpath(Path(self.cwd, path))

    async def protection(self) -> Protection:
        """What stands between commands and this machine now."""
        return await asyncio.to_thread(self._sandbox.protection)

    def grant_network(self, granted: bool = True) -> None:
        """For the next commands of this session."""
        self._sandbox.grant_network(granted)

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
        self._searching = self._searching or self._new_search()
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
        return await self._shell.run(
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
        return await self._processes.spawn(
            effect.script,
            effect.cwd,
            notify=notify,
            watch=watch,
            pty=pty,
            free=ANYWHERE in effect.grants,
        )

    async def scratch(self, name: str, data: bytes) -> str:
        path = self._state / "scratch" / name.replace("/", "_").lstrip(".")
        await asyncio.to_thread(files.write_file, str(path), data)
        return str(path)

    async def close(self) -> None:
        """Ends what foreground commands left behind. Background processes run on and are taken
        up again by the next workspace with this state folder."""
        await self._processes.shut()
        await self._shell.close()


def _search(env: Mapping[str, str], engine: EngineName | None, limits: SearchLimits) -> LocalSearch:
    from hermes.workspaces.search.local import LocalSearch  # most sessions start without a search

    return LocalSearch(env, engine=engine, limits=limits)


def _another_home(path: str) -> Path:
    """`~name/…`, looked up in the user database."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
