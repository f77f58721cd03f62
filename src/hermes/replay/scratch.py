"""A real workspace in a copy: tools see the paths of the record, the copy is what they change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.core.delegating import DelegatingWorkspace, RunOptions, SpawnOptions
from hermes.core.effects import RunCommand
from hermes.core.errors import UsageError
from hermes.core.ports import (
    CommandResult,
    FileInfo,
    ProcessInfo,
    SearchMatch,
    SearchQuery,
    SearchResult,
    Workspace,
)

if TYPE_CHECKING:
    from typing import Unpack

MAX_BYTES = 500_000_000
MAX_FILES = 50_000


class ScratchWorkspace(DelegatingWorkspace):
    """Wherever the folder of the record is named, its copy is meant, and the other way round."""

    def __init__(self, inner: Workspace, *, root: str, copy: str) -> None:
        super().__init__(inner)
        self._root = root
        self._copy = copy

    @property
    def root(self) -> str:
        return self._root

    @property
    def cwd(self) -> str:
        return self._out(self._inner.cwd)

    def resolve(self, path: str) -> str:
        return self._out(self._inner.resolve(self._in(path)))

    async def stat(self, path: str) -> FileInfo | None:
        found = await self._inner.stat(self._in(path))
        return replace(found, path=path) if found is not None else None

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        found = await self._inner.list_folder(self._in(path))
        return tuple(replace(each, path=self._out(each.path)) for each in found)

    async def read_bytes(self, path: str) -> bytes:
        return await self._inner.read_bytes(self._in(path))

    async def write_bytes(self, path: str, data: bytes) -> None:
        await self._inner.write_bytes(self._in(path), data)

    async def delete(self, path: str) -> None:
        await self._inner.delete(self._in(path))

    async def search(self, query: SearchQuery) -> SearchResult:
        found = await self._inner.search(replace(query, root=self._in(query.root)))
        matches = tuple(self._translate_output(match) for match in found.matches)
        files = tuple(map(self._out, found.files))
        return SearchResult(matches=matches, files=files, cut=found.cut)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        # As it comes, output may be cut in the middle of a path, so it is shown at the end only.
        options["on_output"] = None
        done = await self._inner.run(self._translate_cwd(effect), **options)
        return replace(done, output=self._out(done.output), cwd=self._out(done.cwd))

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        info = await self._inner.spawn(self._translate_cwd(effect), **options)
        return replace(info, command=effect.script, cwd=self._out(info.cwd))

    def _in(self, text: str) -> str:
        return text.replace(self._root, self._copy)

    def _out(self, text: str) -> str:
        return text.replace(self._copy, self._root)

    def _translate_cwd(self, effect: RunCommand) -> RunCommand:
        return replace(effect, script=self._in(effect.script), cwd=self._in(effect.cwd))

    def _translate_output(self, match: SearchMatch) -> SearchMatch:
        return replace(match, path=self._out(match.path))


def copy_folder(source: Path, target: Path) -> None:
    """UsageError when there is nothing to copy, or too much of it."""
    if not source.is_dir():
        raise UsageError(f"{source} is not here, so tools cannot run live; leave out --tools live.")
    files = size = 0
    for path in source.rglob("*"):
        if path.is_file() and not path.is_symlink():
            files, size = files + 1, size + path.stat().st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise UsageError(f"{source} is too large to be copied for a replay with live tools.")
    shutil.copytree(source, target, symlinks=True)
