"""Delegating workspaces, processes and fetchers, and the gated ones that tools get."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, TypedDict

from hermes.core.effects import DeletePath, FetchUrl, ReadPath, RunCommand, SignalProcess, WritePath
from hermes.core.errors import ToolError
from hermes.core.gate import CallGate
from hermes.core.ports import (
    CommandResult,
    Fetcher,
    FetchResponse,
    FileInfo,
    Processes,
    ProcessInfo,
    ProcessNotice,
    SearchQuery,
    SearchResult,
    ShellSetup,
    Workspace,
)

if TYPE_CHECKING:
    from typing import NotRequired, Unpack


class RunOptions(TypedDict):
    """What `Workspace.run` takes besides the command."""

    timeout: float
    stop: asyncio.Event
    max_bytes: int
    pty: NotRequired[bool]
    env: NotRequired[Mapping[str, str] | None]
    on_output: NotRequired[Callable[[str], None] | None]


class SpawnOptions(TypedDict, total=False):
    """What `Workspace.spawn` takes besides the command."""

    notify: bool
    watch: tuple[str, ...]
    pty: bool


class FetchOptions(TypedDict, total=False):
    """What `Fetcher.fetch` takes besides the address."""

    headers: Mapping[str, str] | None
    body: bytes
    max_bytes: int
    timeout: float
    passing: Callable[[FetchUrl], None]


class DelegatingWorkspace:
    """A workspace that forwards everything to another one; subclasses change some methods."""

    def __init__(self, inner: Workspace) -> None:
        self._inner = inner

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def cwd(self) -> str:
        return self._inner.cwd

    @property
    def is_remote(self) -> bool:
        return self._inner.is_remote

    @property
    def shell(self) -> ShellSetup:
        return self._inner.shell

    @property
    def processes(self) -> Processes:
        return self._inner.processes

    def resolve(self, path: str) -> str:
        return self._inner.resolve(path)

    async def stat(self, path: str) -> FileInfo | None:
        return await self._inner.stat(path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        return await self._inner.list_folder(path)

    async def read_bytes(self, path: str) -> bytes:
        return await self._inner.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._inner.write_bytes(path, data)

    async def delete(self, path: str) -> None:
        await self._inner.delete(path)

    async def search(self, query: SearchQuery) -> SearchResult:
        return await self._inner.search(query)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        return await self._inner.run(effect, **options)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        return await self._inner.spawn(effect, **options)

    async def scratch(self, name: str, data: bytes) -> str:
        return await self._inner.scratch(name, data)

    async def close(self) -> None:
        await self._inner.close()


class DelegatingProcesses:
    """Background processes that forward everything to `inner`; subclasses change some methods."""

    def __init__(self, inner: Processes) -> None:
        self._inner = inner

    async def list(self) -> tuple[ProcessInfo, ...]:
        return await self._inner.list()

    async def poll(self, process_id: str) -> ProcessInfo:
        return await self._inner.poll(process_id)

    async def log(self, process_id: str, *, offset: int, limit: int) -> ProcessInfo:
        return await self._inner.log(process_id, offset=offset, limit=limit)

    async def wait(self, process_id: str, *, timeout: float, stop: asyncio.Event) -> ProcessInfo:
        return await self._inner.wait(process_id, timeout=timeout, stop=stop)

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        return await self._inner.write(process_id, data)

    async def close(self, process_id: str) -> ProcessInfo:
        return await self._inner.close(process_id)

    async def kill(self, process_id: str) -> ProcessInfo:
        return await self._inner.kill(process_id)

    def notices(self) -> AsyncIterator[ProcessNotice]:
        return self._inner.notices()


_MOVES = re.compile(r"\b(?:cd|pushd|popd|chdir|setwd)\b")


class GatedWorkspace(DelegatingWorkspace):
    """A workspace that asks the gate before every operation. It overrides each method, because a
    method that is only delegated would bypass the gate."""

    def __init__(self, inner: Workspace, gate: CallGate) -> None:
        super().__init__(inner)
        self._gate = gate

    @property
    def processes(self) -> Processes:
        return GatedProcesses(self._inner.processes, self._gate)

    async def stat(self, path: str) -> FileInfo | None:
        await self._gate.require(ReadPath(path=path), metadata_only=True)
        return await self._inner.stat(path)

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        await self._gate.require(ReadPath(path=path), metadata_only=True)
        return await self._inner.list_folder(path)

    async def read_bytes(self, path: str) -> bytes:
        await self._gate.require(ReadPath(path=path))
        return await self._inner.read_bytes(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._gate.require(WritePath(path=path))
        await self._inner.write_bytes(path, data)

    async def delete(self, path: str) -> None:
        await self._gate.require(DeletePath(path=path))
        await self._inner.delete(path)

    async def search(self, query: SearchQuery) -> SearchResult:
        """Search, and leave out files that may not be read."""
        await self._gate.require(ReadPath(path=query.root))
        result = await self._inner.search(query)
        paths = {match.path for match in result.matches} | set(result.files)
        hidden = {path for path in paths if not self._gate.permits(ReadPath(path=path))}
        for match in result.matches:
            if match.path not in hidden:
                self._gate.add_origin(ReadPath(path=match.path))
        if not hidden:
            return result
        return SearchResult(
            matches=tuple(match for match in result.matches if match.path not in hidden),
            files=tuple(path for path in result.files if path not in hidden),
            cut=result.cut,
        )

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        effect = await self._gate.authorize_command(effect)
        return await self._inner.run(effect, **options)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        effect = await self._gate.authorize_command(effect)
        return await self._inner.spawn(effect, **options)

    async def close(self) -> None:
        """Do nothing: a tool does not own the workspace."""


class GatedProcesses(DelegatingProcesses):
    """Background processes that ask the gate before input, end of input and kill."""

    def __init__(self, inner: Processes, gate: CallGate) -> None:
        super().__init__(inner)
        self._gate = gate

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        known = {info.id: info for info in await self._inner.list()}
        lines = self._gate.partial_lines
        text = lines.get(process_id, "") + data
        if info := known.get(process_id):
            await self._gate.require(
                SignalProcess(
                    process_id=process_id,
                    action="write",
                    text=text,
                    command=info.command,
                    cwd="" if process_id in self._gate.unknown_cwd else info.cwd,
                )
            )
        if _MOVES.search(text):
            self._gate.unknown_cwd.add(process_id)
        lines[process_id] = text.rpartition("\n")[2]
        return await self._inner.write(process_id, data)

    async def close(self, process_id: str) -> ProcessInfo:
        await self._gate.require(SignalProcess(process_id=process_id, action="close"))
        return await self._inner.close(process_id)

    async def kill(self, process_id: str) -> ProcessInfo:
        await self._gate.require(SignalProcess(process_id=process_id, action="kill"))
        return await self._inner.kill(process_id)


class GatedFetcher:
    """Access to the web for one call. It asks the gate before every request and redirect."""

    def __init__(self, inner: Fetcher, gate: CallGate) -> None:
        self._inner = inner
        self._gate = gate

    async def fetch(self, effect: FetchUrl, **options: Unpack[FetchOptions]) -> FetchResponse:
        if options.get("body") and not effect.sends_body:
            raise ToolError("The request has a body that its effect does not declare.")
        await self._gate.require(effect)
        passing = options.get("passing")

        def check(there: FetchUrl) -> None:
            if passing is not None:
                passing(there)
            self._gate.check(there)
            self._gate.add_origin(there)

        options["passing"] = check
        return await self._inner.fetch(effect, **options)


class NoWeb:
    """The web access of a session that has none."""

    async def fetch(self, effect: FetchUrl, **options: Unpack[FetchOptions]) -> FetchResponse:
        raise ToolError(f"This session has no web access, so {effect.url} cannot be fetched.")
