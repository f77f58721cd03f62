"""The workspace on this machine: its files, shell, processes and search."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.errors import ToolError
from hermes.core.ports import FileInfo, SearchQuery, SearchResult
from hermes.core.world import World
from hermes.workspaces import files
from hermes.workspaces.command_workspace import CommandRuntime, CommandWorkspace
from hermes.workspaces.confinement.sandbox import Confinement, Sandbox
from hermes.workspaces.keeper import LocalKeeper
from hermes.workspaces.local_runner import LocalRunner
from hermes.workspaces.processes import ProcessLimits, SessionProcesses
from hermes.workspaces.shell import Shell, ShellSettings, Sudo
from hermes.workspaces.survivors import RECORDS, CommandRecords

if TYPE_CHECKING:
    from hermes.workspaces.search.engines import SearchLimits
    from hermes.workspaces.search.local import LocalSearch


class LocalWorkspace(CommandWorkspace):
    """A workspace on this machine, for one session.

    state       a session folder for snapshots, logs and scratch files
    env         the start environment of commands, without secrets
    secret_env  returns the secrets that commands may use at that moment; none is stored
    """

    is_remote = False

    def __init__(
        self,
        root: str,
        *,
        state: Path,
        world: World,
        env: Mapping[str, str],
        shell: ShellSettings | None = None,
        limits: SearchLimits | None = None,
        process_limits: ProcessLimits | None = None,
        confinement: Confinement | None = None,
        sudo: Sudo | None = None,
        secret_env: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.root = os.path.realpath(root)
        self._state = state.absolute()
        self._env = env
        self._limits = limits

        def make_runtime() -> CommandRuntime:
            sandbox = Sandbox(confinement or Confinement(), self.root, self._state, env)
            # Definitions of confined commands must not run unconfined later.
            folder = self._state / ("shell-confined" if sandbox.wanted else "shell")
            runner = LocalRunner(
                folder,
                world=world,
                env=env,
                sandbox=sandbox,
                # Shared by the sessions of a home, so that each finds what another one left.
                records=CommandRecords(
                    self._state.parent / RECORDS, self._state, env.get("PATH", os.defpath)
                ),
                secret_env=secret_env,
            )
            settings = shell or ShellSettings()
            bash = Shell(self.root, folder, runner=runner, settings=settings, sudo=sudo)
            processes = SessionProcesses(
                self._state / "processes",
                shell=bash,
                keeper=LocalKeeper(runner),
                world=world,
                limits=process_limits,
            )
            return CommandRuntime(bash, processes)

        super().__init__(make_runtime)

    @cached_property
    def _searching(self) -> LocalSearch:
        from hermes.workspaces.search.local import LocalSearch  # many sessions never search

        return LocalSearch(self._env, limits=self._limits)

    def resolve(self, path: str) -> str:
        if "\0" in path:
            raise ToolError("A path cannot contain a NUL byte.")
        home = self._runtime.shell.variable("HOME") or self._env.get("HOME", "/")
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        elif path.startswith("~"):
            path = os.path.expanduser(path)  # noqa: PTH111
        return os.path.realpath(Path(self.cwd, path))

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

    async def scratch(self, name: str, data: bytes) -> str:
        path = str(self._state / "scratch" / name.replace("/", "_").lstrip("."))
        await self.write_bytes(path, data)
        return path

    async def close(self) -> None:
        """Background processes run on, and the next workspace with this state folder takes them
        over."""
        await self._close_runtime()
