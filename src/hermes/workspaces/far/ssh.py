"""The way to a machine by OpenSSH: one connection that is kept up, for all lines of bash."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.child import Child, first_of
from hermes.workspaces.confinement.protection import Protection
from hermes.workspaces.far.machine import READ_LINE
from hermes.workspaces.files import find_program

# Host keys are checked as the person's own settings say; nobody is there to answer questions.
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
_FAR_BASH = f"exec bash --norc --noprofile -c '{READ_LINE}'"
# A socket's path may have some hundred bytes.
_SOCKET_PATH_BYTES = 90


class SshSettings(Value):
    """`key` is a file; "" leaves the choice to ssh. `config` is read instead of ~/.ssh/config."""

    host: str
    user: str = ""
    port: int = 22
    key: str = ""
    config: str = ""
    connect_seconds: int = 10


class SshEntrance:
    """`folder` holds the control socket; it must be the user's own. The connection ends with
    Hermes, however that ends, because it lives on a pipe from here."""

    def __init__(self, settings: SshSettings, folder: Path, env: Mapping[str, str]) -> None:
        if settings.host.startswith("-") or settings.user.startswith("-"):
            raise ToolError("A host or user cannot begin with a dash.")
        self._settings = settings
        self._env = {**env, "LC_ALL": "C"}
        name = hashlib.sha256(repr(settings).encode()).hexdigest()[:12]
        self._socket = _short(folder / f"{name}-{os.getpid()}-{id(self):x}")
        self._master: Child | None = None
        self._hold = -1
        self._opening = asyncio.Lock()

    @property
    def protection(self) -> Protection:
        target = self._settings.host
        return Protection(
            kind="machine",
            details=(f"commands run on {target}, with nothing of this machine in reach",),
            gaps=(f"on {target} they can do whatever the login there can",),
        )

    @property
    def env(self) -> Mapping[str, str]:
        return self._env

    @property
    def words(self) -> tuple[str, ...]:
        """Through the connection if it stands; ssh makes one of its own where too many share it."""
        return (*self._ssh("ControlMaster=no"), _FAR_BASH)

    def _ssh(self, *options: str) -> tuple[str, ...]:
        settings = self._settings
        program = find_program("ssh", self._env.get("PATH", os.defpath))
        if program is None:
            raise ToolError("There is no ssh on this machine. Ask the user to install it.")
        words = [program, "-T"]
        if settings.config:
            words += ["-F", settings.config]
        connect = f"ConnectTimeout={settings.connect_seconds}"
        for option in (*_OPTIONS, connect, f"ControlPath={self._socket}", *options):
            words += ["-o", option]
        if settings.key:
            words += ["-i", str(Path(settings.key).expanduser()), "-o", "IdentitiesOnly=yes"]
        if settings.user:
            words += ["-l", settings.user]
        return (*words, "-p", str(settings.port), "--", settings.host)

    async def open(self) -> None:
        async with self._opening:
            if self._master and not self._master.ended.done():
                return
            await self._connect()

    def open_now(self) -> None:
        """ssh connects by itself where no connection stands."""

    async def hibernate(self) -> None:
        await self.close()

    async def _connect(self) -> None:
        """The connection stands when what is sent over it comes back."""
        self._drop()
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._socket.unlink(missing_ok=True)
        errors = bytearray()
        up: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(_end: object = None) -> None:
            if not up.done():
                up.set_result(None)

        def echoed(data: bytes) -> None:
            if b"up\n" in data:
                settle()

        words = (*self._ssh("ControlMaster=yes", "ControlPersist=no"), "echo up; exec cat")
        reading, self._hold = os.pipe()
        os.set_inheritable(self._hold, False)
        try:
            self._master = Child(
                words[0], words, self._env, echoed, errors=errors.extend, source=reading
            )
        finally:
            os.close(reading)
        self._master.ended.add_done_callback(settle)
        how = await first_of(up, timeout=self._settings.connect_seconds + 5)
        if how == "timeout" or self._master.ended.done():
            self._drop()
            raise ToolError(_advice(self._settings.host, errors.decode("utf-8", "replace")))

    def _drop(self) -> None:
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        if self._master:
            self._master.close()

    async def close(self, *, keep: bool = False) -> None:
        """What runs on the machine does so without us."""
        self._drop()
        if self._master and not self._master.ended.done():
            await self._master.end(grace_seconds=0.5)
        self._master = None
        self._socket.unlink(missing_ok=True)


def _short(path: Path) -> Path:
    """ssh adds some letters of its own while it makes the socket."""
    if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return Path(f"/tmp/hermes-ssh-{os.getuid()}", name)


def _advice(host: str, words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    last = lines[-1] if lines else "no answer in time"
    if "Host key verification failed" in words:
        return (
            f"The key of {host} is not known. Ask the user to connect once with ssh and check it."
        )
    if "Permission denied" in words:
        return f"{host} does not let us in ({last}). Ask the user to check user name and key."
    return f"{host} cannot be reached: {last}. Try again later or ask the user."
