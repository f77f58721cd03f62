"""A workspace on a machine that runs lines of bash: ssh, containers, cloud sandboxes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

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
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.processes import ProcessLimits, SessionProcesses
from hermes.workspaces.remote.calls import RemoteCalls, RemoteMachine
from hermes.workspaces.remote.files import RemoteFiles, RemoteSearch
from hermes.workspaces.remote.keeper import RemoteKeeper
from hermes.workspaces.remote.runner import RemoteRunner
from hermes.workspaces.remote.sync import FileSync
from hermes.workspaces.search.matches import SearchLimits
from hermes.workspaces.shell import Shell, ShellSettings, Sudo

log = logging.getLogger(__name__)

MOST_KNOWN_PATHS = 500

# `~` is the remote home folder; a path need not exist.
_RESOLVE = (
    'case "$__data" in "~"|"~/"*) __data="$HOME${__data:1}";; esac; '
    '__real=$(realpath -m -- "$__data" 2>/dev/null || readlink -f -- "$__data"; printf .); '
    "__real=${__real%$'\\n.'}; builtin printf %s \"${__real:-$__data}\""
)


class RemoteWorkspace:
    """Implements the port for one session, once `arrive` has been called. `root` is a remote
    folder, absolute or below `~`; `state` is a local folder for snapshots, logs and records.
    `extra_env` are variables for remote commands; `secret_env` are those that no remote file and no
    later command may hold. After `idle_seconds` without a call or process the machine hibernates; 0
    disables that. A missing root is created only with `make_root`: on a machine that the user owns
    it is a mistake."""

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
        limits: SearchLimits | None = None,
        process_limits: ProcessLimits | None = None,
        sudo: Sudo | None = None,
        idle_seconds: float = 0,
        make_root: bool = False,
    ) -> None:
        self._machine = machine
        self._idle_seconds = idle_seconds
        self._dozing: asyncio.Task[None] | None = None
        self._wanted_root = root
        self._known_root = root if root.startswith("/") else ""
        self._resolved_paths: dict[str, str] = {}
        self._state = state.absolute()
        self._calls = RemoteCalls(machine, world)
        settings = shell or ShellSettings()
        self._runner = RemoteRunner(
            self._calls,
            key=state.name,
            extra_env=extra_env or {},
            passthrough=settings.passthrough,
            sudo_works=sudo is not None,
            made=(lambda: self.root) if make_root else None,
            secret_env=secret_env,
        )
        self._files = RemoteFiles(self._calls)
        self._search = RemoteSearch(self._calls, limits or SearchLimits())
        self._settings, self._sudo = settings, sudo
        self._world, self._process_limits = world, process_limits
        self._parts: tuple[Shell, SessionProcesses] | None = None

    @property
    def root(self) -> str:
        if not self._known_root:
            self._known_root = self._ask_path(self._wanted_root)
        return self._known_root

    @property
    def cwd(self) -> str:
        return self._shell.cwd

    @property
    def is_remote(self) -> bool:
        return True

    @property
    def shell(self) -> ShellSetup:
        return self._shell.setup

    @property
    def processes(self) -> SessionProcesses:
        return self._runtime()[1]

    @property
    def _shell(self) -> Shell:
        return self._runtime()[0]

    def _runtime(self) -> tuple[Shell, SessionProcesses]:
        """Created on demand, because the root may have to be requested."""
        if self._parts is None:
            shell = Shell(
                self.root,
                self._state / "shell",
                runner=self._runner,
                settings=self._settings,
                sudo=self._sudo,
            )
            preface = self._settings.limits.in_bash()
            processes = SessionProcesses(
                self._state / "processes",
                shell=shell,
                keeper=RemoteKeeper(self._runner, self._calls, self._world.clock, preface=preface),
                world=self._world,
                limits=self._process_limits,
            )
            self._parts = (shell, processes)
        return self._parts

    async def connect(self) -> None:
        """Connect and find the folder; ToolError says what is wrong."""
        await self._machine.open()
        self._known_root = await asyncio.to_thread(self._ask_path, self._wanted_root)
        await self._runner.prepare()
        if not await self._runner.is_folder(self._known_root):
            raise ToolError(f"There is no folder {self._known_root} on the remote machine.")

    async def protection(self) -> ConfinementReport:
        return self._machine.protection

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

    async def stat(self, path: str) -> FileInfo | None:
        return await self._files.stat(path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        return await self._files.list_folder(path)

    async def read_bytes(self, path: str) -> bytes:
        return await self._files.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._files.write_bytes(path, data)

    async def delete(self, path: str) -> None:
        await self._files.delete(path)

    async def search(self, query: SearchQuery) -> SearchResult:
        return await self._search.find(query)

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
        self._schedule_hibernation()
        return await self._shell.run(
            effect.script,
            effect.cwd,
            timeout=timeout,
            stop=stop,
            max_bytes=max_bytes,
            pty=pty,
            on_output=on_output,
        )

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo:
        return await self.processes.spawn(
            effect.script, effect.cwd, notify=notify, watch=watch, pty=pty
        )

    def sync(self) -> FileSync:
        """Copy declared files in both directions."""
        return FileSync(self._calls, self._state / "synced.json")

    async def scratch(self, name: str, data: bytes) -> str:
        await self._runner.prepare()
        path = f"{self._runner.folder}/scratch/{name.replace('/', '_').lstrip('.')}"
        await self._files.write_bytes(path, data)
        return path

    def _schedule_hibernation(self) -> None:
        if self._idle_seconds and (self._dozing is None or self._dozing.done()):
            self._dozing = asyncio.create_task(self._hibernate(), name="idle machine")

    async def _hibernate(self) -> None:
        """Hibernate after the idle time; the next command restarts this."""
        try:
            while not await self._calls.hibernate(self._idle_seconds):
                left = self._idle_seconds - self._calls.idle_seconds()
                await self._world.clock.sleep(max(left, 0.05))
        except ToolError as error:
            log.warning("machine did not hibernate", extra={"why": str(error)})

    async def close(self) -> None:
        """End leftovers of foreground commands, and the connection. Background processes run on as
        long as their machine does."""
        if self._dozing:
            self._dozing.cancel()
        keep = False
        if self._parts:
            shell, processes = self._parts
            keep = processes.any_running
            await processes.release()
            await shell.close()
        await self._machine.close(keep=keep)


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
