"""A runner for trying tools: a real folder as workspace, and calls made as the loop makes them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from hermes.codec.values import JsonObject
from hermes.core.delegating import NoWeb
from hermes.core.effects import Effect, RunCommand
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.messages import ToolResult
from hermes.core.ports import (
    CommandResult,
    FileInfo,
    Processes,
    ProcessInfo,
    SearchQuery,
    SearchResult,
    ShellSetup,
)
from hermes.core.tools import Tool, ToolOutput, ToolSettings
from hermes.core.world import World
from hermes.workspaces.files import delete_file, file_info, list_folder, read_file, write_file
from hermes.workspaces.local import LocalWorkspace

ServiceT = TypeVar("ServiceT")


class FolderWorkspace:
    """The files of one real folder. `broken` paths cannot be written or deleted, `secret` ones
    not be looked at; `on_write` is called before each write."""

    def __init__(self, root: Path) -> None:
        self.root = self.cwd = str(root)
        self.is_remote = False
        self.shell = ShellSetup()
        self.broken: set[str] = set()
        self.secret: set[str] = set()
        self.on_write: Callable[[str], None] = lambda _path: None

    @property
    def processes(self) -> Processes:
        raise NotImplementedError

    def resolve(self, path: str) -> str:
        return os.path.realpath(Path(self.cwd, path).expanduser())

    async def stat(self, path: str) -> FileInfo | None:
        self._look(path)
        return file_info(path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        return list_folder(path)

    async def read_bytes(self, path: str) -> bytes:
        self._look(path)
        return read_file(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        self.on_write(path)
        self._touch(path)
        write_file(path, data)

    async def delete(self, path: str) -> None:
        self._touch(path)
        delete_file(path)

    async def scratch(self, name: str, data: bytes) -> str:
        raise NotImplementedError

    async def search(self, query: SearchQuery) -> SearchResult:
        raise NotImplementedError

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
        raise NotImplementedError

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def _look(self, path: str) -> None:
        if Path(path).name in self.secret:
            raise EffectDenied("Not allowed: secret.")

    def _touch(self, path: str) -> None:
        if Path(path).name in self.broken:
            raise ToolError(f"{path}: the disk is full.")


class ToolRunner:
    """Decodes arguments, names effects and runs a tool, as a session does; it is the ToolContext
    of every call made on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = FolderWorkspace(root)
        self.web = NoWeb()
        self.settings = ToolSettings()
        self.call_id = "call_1"
        self.stop = asyncio.Event()
        self.answer: str | None = None
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self._kept: dict[Any, Any] = {}
        self._latest: dict[str, JsonObject] = {}

    def progress(self, text: str, details: JsonObject | None = None) -> None:
        pass

    def known_result(self, key: str) -> ToolResult | None:
        return None

    def latest(self, tool: str) -> JsonObject | None:
        return self._latest.get(tool)

    def service(self, kind: type[ServiceT]) -> ServiceT:
        found: ServiceT = self._kept.setdefault(kind, kind())
        return found

    async def call_tool(
        self, tool: str | Tool, arguments: JsonObject, *, key: str, origin: str = ""
    ) -> ToolResult:
        raise NotImplementedError

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        self.asked.append((question, choices))
        return self.answer

    def effects(self, tool: Tool, **arguments: Any) -> list[Effect]:
        return list(tool.effects(self.workspace, tool.parameters.decode(arguments)))

    async def run(self, tool: Tool, **arguments: Any) -> ToolOutput:
        self.effects(tool, **arguments)
        try:
            output = await tool(self, tool.parameters.decode(arguments))
        except ToolError as error:
            return ToolOutput.text(str(error), failed=True)
        if not output.failed:
            self._latest[tool.name] = output.details
        return output

    def put(self, name: str, content: str | bytes) -> str:
        """Write a file behind the tools' back; its absolute path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def get(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def files(self) -> dict[str, bytes]:
        found = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[ToolRunner]:
    root = tmp_path / "project"
    root.mkdir()
    yield ToolRunner(root.resolve())


@pytest.fixture
async def shell(runner: ToolRunner, tmp_path: Path) -> AsyncIterator[ToolRunner]:
    """The runner with a real shell."""
    env = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    root, state = str(runner.root), tmp_path / "state"
    workspace = LocalWorkspace(root, state=state, world=World(), env=env)
    runner.workspace = cast(Any, workspace)
    yield runner
    for info in await workspace.processes.list():
        await workspace.processes.kill(info.id)
    await workspace.close()
