"""Delegating wrappers for workspaces, processes and the web: they pass on whatever a subclass does
not change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, TypedDict

from hermes.core.effects import FetchUrl, RunCommand
from hermes.core.ports import (
    CommandResult,
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
