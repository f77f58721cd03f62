"""A workspace on a real folder, with a shell that reads nobody's start files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, ProcessInfo
from hermes.core.world import World
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.processes import ProcessLimits
from hermes.workspaces.shell import ShellSettings
from tests.workspaces.containers import remove_containers, usable
from tests.workspaces.fake_daytona import FakeDaytona
from tests.workspaces.fake_modal import FakeModal
from tests.workspaces.places import (
    AnyPlace,
    confined_missing,
    container_place,
    daytona_place,
    local_place,
    modal_place,
    ssh_place,
)
from tests.workspaces.sshd import Sshd
from tests.workspaces.sshd import missing as ssh_missing


class Place:
    """One session's folder, state and workspace; `reopen` is a new Hermes in the same session."""

    def __init__(self, folder: Path) -> None:
        folder = folder.resolve()
        self.root = folder / "project"
        self.state = folder / "state"
        self.home = folder / "home"
        self.root.mkdir()
        self.home.mkdir()
        self.world = World()
        self.env = {"PATH": os.defpath, "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.shell = ShellSettings()
        self.limits = ProcessLimits()
        self.stop = asyncio.Event()
        self.workspace = self._new()

    def _new(self) -> LocalWorkspace:
        return LocalWorkspace(
            str(self.root),
            state=self.state,
            world=self.world,
            env=self.env,
            shell=self.shell,
            process_limits=self.limits,
        )

    async def reopen(self) -> LocalWorkspace:
        await self.workspace.close()
        self.workspace = self._new()
        return self.workspace

    async def run(
        self,
        script: str,
        *,
        cwd: str = "",
        timeout: float = 20,
        max_bytes: int = 50_000,
        pty: bool = False,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        return await self.workspace.run(
            RunCommand(script=script, cwd=cwd or self.workspace.cwd),
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
        info = await self.workspace.processes.wait(process_id, timeout=20, stop=self.stop)
        assert info.status == "exited"
        return info


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    for info in await place.workspace.processes.list():
        await place.workspace.processes.kill(info.id)
    await place.workspace.close()


PLACES = (
    "local",
    "bubblewrap",
    "landlock",
    "ssh",
    pytest.param("container", marks=pytest.mark.slow),
    pytest.param("daytona", marks=pytest.mark.slow),
    pytest.param("modal", marks=pytest.mark.slow),
)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    if why := ssh_missing():
        pytest.skip(why)
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture(params=PLACES)
async def anyplace(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnyPlace]:
    """Every place that this machine has, each with a reason when it has not."""
    match request.param:
        case "ssh":
            place = ssh_place(tmp_path, request.getfixturevalue("sshd"))
        case "local":
            place = local_place(tmp_path)
        case "daytona":
            fake = FakeDaytona(tmp_path / "daytona")
            request.addfinalizer(fake.stop)
            place = daytona_place(tmp_path, fake)
        case "modal":
            modal = FakeModal(tmp_path / "modal")
            request.addfinalizer(modal.stop)
            place = modal_place(tmp_path, modal)
        case "container":
            if isinstance(settings := usable(), str):
                pytest.skip(settings)
            place = container_place(tmp_path, settings)
        case wanted:
            if why := confined_missing(wanted):
                pytest.skip(why)
            place = local_place(tmp_path, wanted)
    yield place
    await place.close()
    if request.param == "container":
        remove_containers()
