"""A workspace on a real folder, with a shell that reads nobody's start files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, ProcessInfo
from hermes.core.world import World
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.processes import ProcessLimits
from hermes.workspaces.shell import ShellSettings


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
