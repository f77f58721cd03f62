"""A workspace on a machine that runs lines of bash: ssh, containers, cloud sandboxes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.effects import RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult
from hermes.core.world import World
from hermes.workspaces.command_workspace import CommandRuntime, CommandWorkspace
from hermes.workspaces.processes import SessionProcesses
from hermes.workspaces.remote.calls import RemoteCalls, RemoteMachine
from hermes.workspaces.remote.cli import CliMachine
from hermes.workspaces.remote.files import RemoteFiles
from hermes.workspaces.remote.keeper import RemoteKeeper
from hermes.workspaces.remote.runner import RemoteRunner
from hermes.workspaces.shell import Shell, ShellSettings, Sudo
from hermes.workspaces.survivors import RECORDS, CommandRecords

if TYPE_CHECKING:
    from typing import Unpack

    from hermes.core.delegating import RunOptions

log = logging.getLogger(__name__)

MOST_KNOWN_PATHS = 500

# `~` is the remote home folder; a path need not exist.
_RESOLVE = (
    'case "$__data" in "~"|"~/"*) __data="$HOME${__data:1}";; esac; '
    '__real=$(realpath -m -- "$__data" 2>/dev/null || readlink -f -- "$__data"; printf .); '
    "__real=${__real%$'\\n.'}; builtin printf %s \"${__real:-$__data}\""
)


class RemoteWorkspace(RemoteFiles, CommandWorkspace):
    """A workspace on another machine, for one session. Call `connect` first.

    root          a remote folder, absolute or below `~`
    state         a local folder for snapshots, logs and records
    extra_env     variables for remote commands
    secret_env    variables that no remote file and no later command may hold
    idle_seconds  the machine hibernates after this time without a call or process; 0 disables that
    make_root     create a missing root; on a machine that the user owns, a missing one is a mistake
    """

    is_remote = True

    def __init__(
        self,
        machine: RemoteMachine,
        root: str,
        *,
        state: Path,
        world: World,
        extra_env: Mapping[str, str] | None = None,
        secret_env: Callable[[], Mapping[str, str]] = dict,
        shell: ShellSettings | None = None,
        sudo: Sudo | None = None,
        idle_seconds: float = 0,
        make_root: bool = False,
    ) -> None:
        self._machine = machine
        self._idle_seconds = idle_seconds
        self._hibernating: asyncio.Task[None] | None = None
        self._wanted_root = root
        self._known_root = root if root.startswith("/") else ""
        self._resolved_paths: dict[str, str] = {}
        self._clock = world.clock
        settings, state = shell or ShellSettings(), state.absolute()
        RemoteFiles.__init__(self, RemoteCalls(machine, world))
        self._runner = RemoteRunner(
            self._calls,
            key=state.name,
            extra_env=extra_env or {},
            passthrough=settings.passthrough,
            sudo_works=sudo is not None,
            new_folder=(lambda: self.root) if make_root else None,
            secret_env=secret_env,
            records=CommandRecords(state.parent / RECORDS, state),
            direct=machine.direct if isinstance(machine, CliMachine) else lambda: ((), {}),
        )

        def make_runtime() -> CommandRuntime:
            """Create the shell and the processes. The root may have to be requested from the
            machine."""
            bash = Shell(
                self.root, state / "shell", runner=self._runner, settings=settings, sudo=sudo
            )
            keeper = RemoteKeeper(self._runner, self._calls, world.clock)
            processes = SessionProcesses(
                state / "processes", shell=bash, keeper=keeper, world=world
            )
            return CommandRuntime(bash, processes)

        CommandWorkspace.__init__(self, make_runtime)

    @property
    def root(self) -> str:
        if not self._known_root:
            self._known_root = self._ask_path(self._wanted_root)
        return self._known_root

    async def connect(self) -> None:
        """Connect and find the folder; raise ToolError that says what is wrong."""
        await self._machine.open()
        self._known_root = await asyncio.to_thread(self._ask_path, self._wanted_root)
        await self._runner.prepare()
        if not await self._runner.is_folder(self._known_root):
            raise ToolError(f"There is no folder {self._known_root} on the remote machine.")

    def resolve(self, path: str) -> str:
        """Ask the machine, which alone knows its links; so call this in a thread. On the loop, only
        results that a thread has just requested are available."""
        if "\0" in path:
            raise ToolError("A path cannot contain a NUL byte.")
        if not path.startswith(("/", "~")):
            path = f"{self.cwd.rstrip('/')}/{path}"
        if _on_loop() and path in self._resolved_paths:
            return self._resolved_paths[path]
        return self._ask_path(path)

    def _ask_path(self, path: str) -> str:
        raw = path.encode("utf-8", "surrogateescape")
        found = self._machine.ask_now(_RESOLVE, raw).decode("utf-8", "surrogateescape")
        if len(self._resolved_paths) >= MOST_KNOWN_PATHS:
            self._resolved_paths.clear()
        self._resolved_paths[path] = found
        return found

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        if self._idle_seconds and (self._hibernating is None or self._hibernating.done()):
            self._hibernating = asyncio.create_task(self._hibernate(), name="idle machine")
        return await super().run(effect, **options)

    async def scratch(self, name: str, data: bytes) -> str:
        await self._runner.prepare()
        path = f"{self._runner.folder}/scratch/{name.replace('/', '_').lstrip('.')}"
        await self.write_bytes(path, data)
        return path

    async def _hibernate(self) -> None:
        """Hibernate after the idle time; the next command restarts this."""
        try:
            while not await self._calls.hibernate(self._idle_seconds):
                left = self._idle_seconds - self._calls.idle_seconds()
                await self._clock.sleep(max(left, 0.05))
        except ToolError as error:
            log.warning("machine did not hibernate", extra={"why": str(error)})

    async def close(self) -> None:
        """Background processes run on as long as their machine does."""
        if self._hibernating:
            self._hibernating.cancel()
        await self._machine.close(keep=await self._close_runtime())


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
