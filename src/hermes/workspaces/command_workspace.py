"""The half of a workspace that runs commands, the same on this machine and on a remote one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, ProcessInfo, ShellSetup
from hermes.workspaces.processes import SessionProcesses
from hermes.workspaces.shell import Shell

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.core.delegating import RunOptions, SpawnOptions


class CommandRuntime(NamedTuple):
    shell: Shell
    processes: SessionProcesses


class CommandWorkspace:
    """A workspace that runs commands. It creates its runtime on first use, because many sessions
    run no command."""

    def __init__(self, make_runtime: Callable[[], CommandRuntime]) -> None:
        self._make_runtime = make_runtime

    @cached_property
    def _runtime(self) -> CommandRuntime:
        return self._make_runtime()

    @property
    def cwd(self) -> str:
        return self._runtime.shell.cwd

    @property
    def shell(self) -> ShellSetup:
        return self._runtime.shell.setup

    @property
    def processes(self) -> SessionProcesses:
        return self._runtime.processes

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        return await self._runtime.shell.run(effect, **options)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        return await self._runtime.processes.spawn(effect, **options)

    async def _close_runtime(self) -> bool:
        """End leftovers of foreground commands, and stop watching background processes, which run
        on. Return whether any does."""
        if "_runtime" not in self.__dict__:
            return False
        processes = self._runtime.processes
        running = processes.any_running
        await processes.release()
        await self._runtime.shell.close()
        return running
