"""Connects to a machine through OpenSSH, with one shared connection for all calls."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from hermes.config.execution_settings import TerminalSettings
from hermes.core.concurrency import wait_for_first
from hermes.core.errors import ToolError
from hermes.workspaces.child import Child
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.files import find_program
from hermes.workspaces.remote.calls import READ_LINE
from hermes.workspaces.remote.cli import CliMachine

# Host keys are checked by the user's own settings, and ssh must not prompt.
_OPTIONS = (
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
)
_REMOTE_BASH = f"exec bash --norc --noprofile -c '{READ_LINE}'"
# The path of a socket is limited to about a hundred bytes.
_SOCKET_PATH_BYTES = 90
_CONNECT_SECONDS = 10


class SshMachine(CliMachine):
    """A machine that ssh connects to. `folder` holds the control socket and must belong to the
    user. The connection lives on a pipe from Hermes, so it ends with Hermes."""

    def __init__(self, terminal: TerminalSettings, folder: Path, env: Mapping[str, str]) -> None:
        if terminal.ssh_host.startswith("-") or terminal.ssh_user.startswith("-"):
            raise ToolError("A host or user cannot begin with a dash.")
        super().__init__({**env, "LC_ALL": "C"})
        self._terminal = terminal
        name = hashlib.sha256(repr(terminal).encode()).hexdigest()[:12]
        self._socket = _shorten_path(folder / f"{name}-{os.getpid()}-{id(self):x}")
        self._master: Child | None = None
        self._hold = -1
        self._opening = asyncio.Lock()

    @property
    def protection(self) -> ConfinementReport:
        target = self._terminal.ssh_host
        return ConfinementReport(
            kind="machine",
            details=(f"commands run on {target}, without access to this machine",),
            gaps=(f"on {target} they have all rights of the login",),
        )

    @property
    def argv(self) -> tuple[str, ...]:
        """Use the shared connection if it is up; otherwise ssh opens one."""
        return (*self._ssh("ControlMaster=no"), _REMOTE_BASH)

    def direct(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """The shared connection ends with this process."""
        _, env = super().direct()
        return (*self._ssh("ControlMaster=no", "ControlPath=none"), _REMOTE_BASH), env

    def _ssh(self, *options: str) -> tuple[str, ...]:
        terminal = self._terminal
        program = find_program("ssh", self._env.get("PATH", os.defpath))
        if program is None:
            raise ToolError("ssh is not installed. Ask the user to install it.")
        argv = [program, "-T"]
        if terminal.ssh_config:
            argv += ["-F", terminal.ssh_config]
        connect = f"ConnectTimeout={_CONNECT_SECONDS}"
        # ssh takes the first value of an option.
        for option in (*options, *_OPTIONS, connect, f"ControlPath={self._socket}"):
            argv += ["-o", option]
        if terminal.ssh_key:
            argv += ["-i", str(Path(terminal.ssh_key).expanduser()), "-o", "IdentitiesOnly=yes"]
        if terminal.ssh_user:
            argv += ["-l", terminal.ssh_user]
        if terminal.ssh_port:
            # Otherwise the port of an alias in the ssh configuration holds.
            argv += ["-p", str(terminal.ssh_port)]
        return (*argv, "--", terminal.ssh_host)

    async def open(self) -> None:
        async with self._opening:
            if self._master and not self._master.ended.done():
                return
            await self._connect()

    async def hibernate(self) -> None:
        await self.close()

    async def _connect(self) -> None:
        """Connect; the connection is up when its echo returns."""
        self._drop()
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._socket.unlink(missing_ok=True)
        errors = bytearray()
        up: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(_end: object = None) -> None:
            if not up.done():
                up.set_result(None)

        def on_output(data: bytes) -> None:
            if b"up\n" in data:
                settle()

        argv = (*self._ssh("ControlMaster=yes", "ControlPersist=no"), "echo up; exec cat")
        reading, self._hold = os.pipe()
        os.set_inheritable(self._hold, False)
        try:
            self._master = Child(
                argv[0], argv, self._env, on_output, errors=errors.extend, source=reading
            )
        finally:
            os.close(reading)
        self._master.ended.add_done_callback(settle)
        how = await wait_for_first(up, timeout=_CONNECT_SECONDS + 5)
        if how == "timeout" or self._master.ended.done():
            self._drop()
            raise ToolError(
                _explain_failure(self._terminal.ssh_host, errors.decode("utf-8", "replace"))
            )

    def _drop(self) -> None:
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        if self._master:
            self._master.close()

    async def close(self, *, keep: bool = False) -> None:
        """Remote processes run on."""
        self._close_shells()
        self._drop()
        if self._master and not self._master.ended.done():
            await self._master.end(grace_seconds=0.5)
        self._master = None
        self._socket.unlink(missing_ok=True)


def _shorten_path(path: Path) -> Path:
    """Return the socket path, or a short one in /tmp if it is too long: ssh appends some characters
    while it creates the socket."""
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Path(f"/tmp/hermes-ssh-{os.getuid()}", name)


def _explain_failure(host: str, errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = lines[-1] if lines else "no answer in time"
    if "Host key verification failed" in errors:
        return f"The host key of {host} is unknown. Ask the user to run ssh once and check it."
    if "Permission denied" in errors:
        return f"{host} refused the login ({last}). Ask the user to check user name and key."
    return f"{host} is not reachable: {last}. Try again later or ask the user."
