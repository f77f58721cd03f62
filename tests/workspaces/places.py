"""The same session in every kind of place that a workspace can be in."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hermes.config.execution_settings import TerminalSettings
from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, ProcessInfo, Workspace
from hermes.core.world import World
from hermes.workspaces.confinement.sandbox import Confinement, Wanted, find_means
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.processes import ProcessLimits
from hermes.workspaces.remote.containers import (
    WORKSPACE,
    ApptainerMachine,
    ContainerMachine,
)
from hermes.workspaces.remote.daytona import DaytonaMachine
from hermes.workspaces.remote.modal import ModalMachine
from hermes.workspaces.remote.ssh import SshMachine
from hermes.workspaces.remote.workspace import RemoteWorkspace
from hermes.workspaces.shell import ShellSettings, Sudo
from tests.workspaces.fake_daytona import KEY, FakeDaytona
from tests.workspaces.fake_modal import FakeModal
from tests.workspaces.sshd import Sshd

# An image or folder with bash, coreutils, findutils and grep, made with `apptainer build`.
APPTAINER_IMAGE = os.environ.get("HERMES_TEST_APPTAINER_IMAGE", "")
Lent = Callable[[], Mapping[str, str]]


class New(Protocol):
    """Makes a workspace in the same place with the same state."""

    def __call__(self, shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace: ...


class WorkspaceSession:
    """A workspace, and what a session does in it; `reopen` is a new Hermes in the same session."""

    def __init__(self) -> None:
        self.shell = ShellSettings()
        self.stop = asyncio.Event()
        self.workspace = self.new()

    def new(self) -> Workspace:
        raise NotImplementedError

    async def reopen(self) -> Workspace:
        await self.workspace.close()
        self.workspace = self.new()
        return self.workspace

    async def run(
        self,
        script: str,
        *,
        cwd: str = "",
        timeout: float = 30,
        max_bytes: int = 50_000,
        pty: bool = False,
        on_output: Callable[[str], None] | None = None,
        grants: tuple[str, ...] = (),
    ) -> CommandResult:
        return await self.workspace.run(
            RunCommand(script=script, cwd=cwd or self.workspace.cwd, grants=grants),
            timeout=timeout,
            stop=self.stop,
            max_bytes=max_bytes,
            pty=pty,
            on_output=on_output,
        )

    async def output(self, script: str, **options: Any) -> str:
        return (await self.run(script, **options)).output

    async def spawn(self, script: str, **options: Any) -> ProcessInfo:
        effect = RunCommand(script=script, cwd=self.workspace.cwd, background=True)
        return await self.workspace.spawn(effect, **options)

    async def ended(self, process_id: str) -> ProcessInfo:
        info = await self.workspace.processes.wait(process_id, timeout=60, stop=asyncio.Event())
        assert info.status == "exited"
        return info

    async def close(self) -> None:
        for info in await self.workspace.processes.list():
            await self.workspace.processes.kill(info.id)
        await self.workspace.close()


class Place(WorkspaceSession):
    """On this machine, with the folders of a session in the open."""

    workspace: LocalWorkspace

    def __init__(self, folder: Path) -> None:
        folder = folder.resolve()
        self.root = folder / "project"
        self.state = folder / "state"
        self.home = folder / "home"
        self.root.mkdir()
        self.home.mkdir()
        self.world = World()
        self.env = {"PATH": os.defpath, "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.limits = ProcessLimits()
        super().__init__()

    def new(self) -> LocalWorkspace:
        return LocalWorkspace(
            str(self.root),
            state=self.state,
            world=self.world,
            env=self.env,
            shell=self.shell,
            process_limits=self.limits,
        )

    async def reopen(self) -> LocalWorkspace:
        await super().reopen()
        return self.workspace


class AnyPlace(WorkspaceSession):
    """Anywhere. `home` is the home folder of commands, as seen by them; `lent` is what they get
    for themselves alone."""

    def __init__(self, kind: str, new: New, *, home: str) -> None:
        self.kind = kind
        self.home = home
        self.sudo: Sudo | None = None
        self.lent: dict[str, str] = {}
        # A time to sleep that no other test uses, so that its processes can be counted.
        self.long = str(100_000 + time.time_ns() % 800_000)
        self._new = new
        super().__init__()

    def new(self) -> Workspace:
        return self._new(self.shell, self.sudo, lambda: self.lent)

    @property
    def root(self) -> str:
        return self.workspace.root

    async def running(self) -> int:
        """How many processes sleep `long`, as seen from inside."""
        word = self.long
        # Split, so that the counting shell does not count itself, and listed before grep is there.
        script = (
            f"w={word[0]}; w=$w'{word[1:]}'; set -- /proc/[0-9]*/cmdline; "
            'grep -lzx -- "$w" "$@" 2>/dev/null | wc -l'
        )
        return int(await self.output(script))


def confined_missing(wanted: Wanted) -> str:
    means, obstacles = find_means(wanted, os.environ.get("PATH", os.defpath))
    return "" if means else "; ".join(obstacles)


def local_place(folder: Path, wanted: Wanted = "off", *, ordinary: bool = False) -> AnyPlace:
    folder = folder.resolve()
    root, home = folder / "project", folder / "home"
    root.mkdir()
    home.mkdir()
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
    }

    def new(shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace:
        return LocalWorkspace(
            str(root),
            state=folder / "state",
            world=World(),
            env=env,
            shell=shell,
            sudo=sudo,
            secret_env=lent,
            confinement=Confinement(wanted=wanted, ordinary=ordinary, network=ordinary),
        )

    return AnyPlace("local" if wanted == "off" else wanted, new, home=str(home))


def ssh_place(folder: Path, sshd: Sshd) -> AnyPlace:
    folder = folder.resolve()
    (folder / "project").mkdir()

    def new(shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace:
        machine = SshMachine(sshd.settings(), folder / "ssh", {"PATH": os.defpath})
        return RemoteWorkspace(
            machine,
            str(folder / "project"),
            state=folder / "state",
            world=World(),
            shell=shell,
            sudo=sudo,
            secret_env=lent,
        )

    return AnyPlace("ssh", new, home=str(sshd.home))


def apptainer_missing() -> str:
    if not (shutil.which("apptainer") or shutil.which("singularity")):
        return "neither apptainer nor singularity is installed"
    return "" if APPTAINER_IMAGE else "no image for it is named in HERMES_TEST_APPTAINER_IMAGE"


def apptainer_place(folder: Path) -> AnyPlace:
    key = f"test-{os.getpid()}-{time.time_ns()}"
    settings = TerminalSettings(backend="singularity", singularity_image=APPTAINER_IMAGE)

    def new(shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace:
        return RemoteWorkspace(
            ApptainerMachine(settings, key, folder, os.environ),
            WORKSPACE,
            state=folder / key,
            world=World(),
            shell=shell,
            sudo=sudo,
            secret_env=lent,
            make_root=True,
        )

    return AnyPlace("apptainer", new, home="/root")


def container_place(folder: Path, settings: TerminalSettings) -> AnyPlace:
    key = f"test-{os.getpid()}-{time.time_ns()}"

    def new(shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace:
        machine = ContainerMachine(settings, key, os.environ)
        return RemoteWorkspace(
            machine,
            WORKSPACE,
            state=folder / key,
            world=World(),
            shell=shell,
            sudo=sudo,
            secret_env=lent,
        )

    return AnyPlace("container", new, home="/root")


def daytona_place(
    folder: Path, fake: FakeDaytona, *, persistent: bool = True, idle_seconds: float = 0
) -> AnyPlace:
    """The folder of the sandbox is the home of its commands, as a real one's is."""
    settings = TerminalSettings(backend="daytona", container_persistent=persistent)
    home = fake.home("hermes-state").resolve()

    def new(shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace:
        return RemoteWorkspace(
            DaytonaMachine(settings, "state", api_key=KEY, url=f"{fake.url}/api"),
            "~/project",
            state=folder / "state",
            world=World(),
            shell=shell,
            sudo=sudo,
            secret_env=lent,
            idle_seconds=idle_seconds,
            make_root=True,
        )

    return AnyPlace("daytona", new, home=str(home))


def modal_place(folder: Path, fake: FakeModal) -> AnyPlace:
    def new(shell: ShellSettings, sudo: Sudo | None, lent: Lent, /) -> Workspace:
        return RemoteWorkspace(
            ModalMachine(TerminalSettings(backend="modal"), folder / "state", sdk=fake),
            str(folder / "project"),
            state=folder / "state",
            world=World(),
            shell=shell,
            sudo=sudo,
            secret_env=lent,
        )

    (folder / "project").mkdir(exist_ok=True)
    return AnyPlace("modal", new, home=str(fake.folder / "sb-0"))
