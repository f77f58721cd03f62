"""A persistent bash: one process per command, with state, settings and sudo carried over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.codec.values import Value
from hermes.config.child_environment import child_environment
from hermes.config.execution_settings import TerminalSettings
from hermes.core.effects import RunCommand
from hermes.core.errors import ConfigError, ToolError
from hermes.core.ports import CommandResult, ShellSetup
from hermes.workspaces import shell_state
from hermes.workspaces.child import PASSWORD_FD, Sink
from hermes.workspaces.runner import (
    ANYWHERE,
    CommandOutcome,
    CommandRequest,
    LiveText,
    OutputWindow,
    Runner,
    interrupted_outcome,
)
from hermes.workspaces.shell_state import ShellState, merge_states, shell_quote

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session

ATTEMPTS = 3

AskPassword = Callable[[], Awaitable[str | None]]
# Runs a line of bash with a password on PASSWORD_FD and returns whether it succeeded.
Check = Callable[[str, bytes], Awaitable[bool]]

_FREE = "command sudo -n -v"
_RIGHT = f"command sudo -k -S -p '' -v <&{PASSWORD_FD}"
# sudo remembers by terminal and session, or by parent process, so the script that follows needs no
# password and cannot read it.
_OPEN = f"command sudo -S -p '' -v <&{PASSWORD_FD} >/dev/null 2>&1; exec {PASSWORD_FD}<&-; "


def uses_sudo(script: str) -> bool:
    """Return whether a command of the script really is sudo."""
    if "sudo" not in script:
        return False
    from hermes.policy.shell.simple_commands import simple_commands, sudo_options

    return any(sudo_options(command.words) is not None for command in simple_commands(script))


class Sudo:
    """The password for sudo in one session. `ask` asks the user without echo and returns None for
    "no". `known` is a password from the settings. A wrong password is forgotten and asked for
    again."""

    def __init__(self, ask: AskPassword | None = None, known: str = "") -> None:
        self._ask = ask
        self._password = known.encode()
        self._is_free = False

    def __repr__(self) -> str:
        return f"Sudo(known={bool(self._password)})"

    async def prepare(self, check: Check) -> tuple[str, bytes]:
        """Return the bash to run before a script with sudo, and the password that it reads; both
        are empty when sudo needs no password or there is none."""
        if self._is_free:
            return "", b""
        if await check(_FREE, b""):
            self._is_free = True
            return "", b""
        for _ in range(ATTEMPTS):
            password = self._password
            if not password and self._ask:
                password = (await self._ask() or "").encode()
            if not password:
                break
            line = password + b"\n"
            if await check(_RIGHT, line):
                self._password = password
                return _OPEN, line
            self._password = b""
        return "", b""


log = logging.getLogger(__name__)

INIT_SECONDS = 10.0
INTERRUPTED = "[Command interrupted]"


class ShellSettings(Value):
    """How the shell of a session starts."""

    # Otherwise every command starts from the start files and leaves no state.
    persistent: bool = True
    # Read once per session, before its first command, as is ~/.bashrc.
    init_files: tuple[str, ...] = ()
    auto_source_bashrc: bool = True
    # Secrets that commands may see. Others that the start files export stay hidden.
    passthrough: tuple[str, ...] = ()


class Shell:
    """The shell of one session, wherever its runner runs it. `folder` is on this machine."""

    def __init__(
        self,
        root: str,
        folder: Path,
        *,
        runner: Runner,
        settings: ShellSettings,
        sudo: Sudo | None = None,
    ) -> None:
        self._root = root
        self._folder = folder
        self._runner = runner
        self._settings = settings
        self._sudo = sudo
        self._start: Mapping[str, str] = {}
        self._preparing = asyncio.Lock()
        self._prepared = False
        self._snapshot = folder / "snapshot.json"
        stored = shell_state.load_state(self._snapshot) if settings.persistent else None
        self._state = stored or ShellState(cwd=root)
        self._new = stored is None

    @property
    def cwd(self) -> str:
        return self._state.cwd

    @property
    def setup(self) -> ShellSetup:
        """Return the definitions that decide what names mean in the next command."""
        state = self._state
        return ShellSetup(
            definitions=state.definitions,
            own=state.own,
            variables=tuple(state.changed),
            path=state.changed.get("PATH", ""),
        )

    def variable(self, name: str) -> str | None:
        """Return a variable as set by commands, or None."""
        return self._state.changed.get(name)

    async def current_state(self, cwd: str) -> tuple[str, ShellState]:
        """Return folder and state for a new process that starts where the shell is."""
        await self._prepare(asyncio.Event())
        if not await self._runner.is_folder(cwd):
            cwd = await self._fallback_folder(cwd)
        return cwd, self._state

    async def run(
        self,
        effect: RunCommand,
        *,
        timeout: float,
        stop: asyncio.Event,
        max_bytes: int,
        pty: bool = False,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        await self._prepare(stop)
        window = OutputWindow(max_bytes)
        sinks: list[Sink] = [window.add]
        if on_output:
            sinks.append(LiveText(on_output).add)
        command = CommandRequest(
            script=effect.script,
            cwd=effect.cwd,
            timeout=timeout,
            pty=pty,
            unconfined=ANYWHERE in effect.grants,
            offline=effect.offline,
            env=dict(env or {}),
        )
        before, outcome = self._state, interrupted_outcome("stopped")
        if not stop.is_set():
            outcome = await self._execute(command, sinks, stop)
        if outcome.how == "nowhere":
            command = replace(command, cwd=await self._fallback_folder(command.cwd))
            before = self._state
            outcome = await self._execute(command, sinks, stop)
        if outcome.after and self._settings.persistent:
            after, cwd = outcome.after, command.cwd
            self._adopt(merge_states(self._state, before, after, cwd=cwd, start=self._start))
        text = window.text()
        remarks = (
            *self._runner.take_reports(),
            *outcome.remarks,
            *((INTERRUPTED,) if outcome.how == "stopped" else ()),
        )
        if remarks:
            text = "\n".join((text.rstrip(), *remarks)).lstrip()
        return CommandResult(
            output=text,
            exit_code=outcome.code,
            cwd=self.cwd,
            total_bytes=window.total_bytes,
            timed_out=outcome.how == "timeout",
            interrupted=outcome.how == "stopped",
        )

    async def _execute(
        self, command: CommandRequest, sinks: Sequence[Sink], stop: asyncio.Event
    ) -> CommandOutcome:
        password = b""
        works = self._runner.can_use_sudo(unconfined=command.unconfined)
        if self._sudo and works and uses_sudo(command.script):

            async def succeeds(line: str, password: bytes) -> bool:
                check = CommandRequest(
                    script=line, cwd=command.cwd, timeout=INIT_SECONDS, unconfined=True
                )
                state = ShellState(cwd=command.cwd)
                done = await self._runner.run(check, state, (), stop=stop, password=password)
                return done.how == "ended" and done.code == 0

            preface, password = await self._sudo.prepare(succeeds)
            command = replace(command, preface=preface)
        return await self._runner.run(command, self._state, sinks, stop=stop, password=password)

    async def _fallback_folder(self, cwd: str) -> str:
        """Return a folder to use instead of a missing one: a command removed the shell's folder, or
        a caller named one that never existed."""
        if cwd != self.cwd:
            raise ToolError(f"There is no folder {cwd}. Check workdir.")
        home = self._root if await self._runner.is_folder(self._root) else "/"
        self._adopt(replace(self._state, cwd=home))
        return home

    def _adopt(self, state: ShellState) -> None:
        if state != self._state:
            self._state = state
            if self._settings.persistent:
                shell_state.save_state(self._snapshot, state)

    async def _prepare(self, stop: asyncio.Event) -> None:
        if self._prepared:
            return
        async with self._preparing:
            if not self._prepared:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._start = await self._runner.prepare()
                names = self._settings.init_files
                if self._settings.auto_source_bashrc:
                    names = (*names, "~/.bashrc")
                if self._new and (files := self._runner.start_files(names)):
                    await self._read_start_files(files, stop)
                self._prepared = not stop.is_set()

    async def _read_start_files(self, files: Sequence[str], stop: asyncio.Event) -> None:
        """Read the start files. Their output is dropped; when they take too long, the session
        continues without them."""
        reads = (f"[[ -f {shell_quote(file)} ]] && builtin . {shell_quote(file)}" for file in files)
        script = "; ".join(("PS1='$ '", *reads))
        command = CommandRequest(script=script, cwd=self.cwd, timeout=INIT_SECONDS)
        finished = await self._runner.run(command, self._state, (), stop=stop)
        if finished.after is None:
            log.warning("shell start files did not finish", extra={"files": [*files]})
            return
        visible = child_environment(finished.after.exports, self._settings.passthrough)
        now, after = self._state, replace(finished.after, exports=visible)
        begun = merge_states(now, now, after, cwd=after.cwd, start=self._start)
        self._adopt(replace(begun, own=begun.definitions))

    async def close(self) -> None:
        await self._runner.close()


SUDO_SECONDS = 45.0
SUDO_QUESTION = "Password for sudo (not shown, stored or sent)"


def is_remote_backend(terminal: TerminalSettings) -> bool:
    return terminal.backend != "local"


def is_isolated(terminal: TerminalSettings) -> bool:
    """Whether commands run in a container that has no network, no folder and no variable of this
    machine. Extra options of the engine might give it some."""
    shared = terminal.docker_mount_cwd_to_workspace or terminal.docker_volumes
    opened = terminal.docker_network or terminal.docker_forward_env or terminal.docker_extra_args
    return terminal.backend in ("docker", "podman") and not shared and not opened


def describe_backend(terminal: TerminalSettings) -> str:
    """Return where commands run, in a few words; "" for this machine."""
    match terminal.backend:
        case "local":
            return ""
        case "ssh":
            user = f"{terminal.ssh_user}@" if terminal.ssh_user else ""
            return f"commands run on {user}{terminal.ssh_host}"
        case "docker" | "podman":
            return f"commands run in a container of {terminal.docker_image}"
        case "singularity":
            return f"commands run in an instance of {terminal.singularity_image}"
        case "modal":
            return "commands run in a Modal sandbox"
        case "daytona":
            return "commands run in a Daytona sandbox"


def check_backend(terminal: TerminalSettings) -> None:
    """Raise ConfigError for settings that cannot work."""
    if terminal.backend == "ssh" and not terminal.ssh_host:
        raise ConfigError(
            "terminal.backend is ssh, but no machine is named; "
            "`hermes config set terminal.ssh_host NAME`."
        )


def shell_settings(terminal: TerminalSettings) -> ShellSettings:
    return ShellSettings(
        persistent=terminal.persistent_shell,
        init_files=terminal.shell_init_files,
        auto_source_bashrc=terminal.auto_source_bashrc,
        passthrough=terminal.env_passthrough,
    )


def make_sudo(run: RunContext, find_session: Callable[[], Session | None]) -> Sudo:
    """Create the `Sudo` of a session. The password that the user enters stays in this process."""

    async def ask() -> str | None:
        session = find_session()
        return await session.ask_secret(SUDO_QUESTION, SUDO_SECONDS) if session else None

    return Sudo(ask, known=run.config.secrets.get("SUDO_PASSWORD"))
