"""Workspaces of a replay: one that does nothing, and a copy for live tools."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.core.delegating import DelegatingWorkspace, RunOptions, SpawnOptions
from hermes.core.effects import DeletePath, ReadPath, RunCommand, SignalProcess, WritePath
from hermes.core.errors import NotFound, ToolError, UsageError
from hermes.core.events import (
    EffectDecided,
    InnerCallFinished,
    JudgedEffect,
    ToolFinished,
    ToolIntended,
)
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
from hermes.replay.sync_points import SyncPoints

if TYPE_CHECKING:
    from typing import Unpack

MAX_BYTES = 500_000_000
MAX_FILES = 50_000


class ScratchWorkspace(DelegatingWorkspace):
    """Translates paths between the recorded folder and its copy, in both directions."""

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
        matches = tuple(replace(match, path=self._out(match.path)) for match in found.matches)
        files = tuple(map(self._out, found.files))
        return SearchResult(matches=matches, files=files, cut=found.cut)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        # Streamed chunks may split a path, so output is translated at the end only.
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


def copy_folder(source: Path, target: Path) -> Path:
    """Copy the folder and return the real path of the copy. Raises UsageError when the folder is
    missing or too large."""
    if not source.is_dir():
        raise UsageError(f"{source} does not exist, so tools cannot run live; omit --tools live.")
    files = size = 0
    for path in source.rglob("*"):
        if path.is_file() and not path.is_symlink():
            files, size = files + 1, size + path.stat().st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise UsageError(f"{source} is too large to copy; omit --tools live.")
    shutil.copytree(source, target, symlinks=True)
    return target.resolve()


class RecordedWorkspace:
    """A workspace that executes nothing. `cwd` is the shell's working directory at this point of
    the record."""

    def __init__(self, root: str, *, home: str, cwd: str, sync: SyncPoints) -> None:
        self.root = root
        self.cwd = cwd
        self.processes: Processes = RecordedProcesses(sync)
        self.is_remote = False
        self.shell = ShellSetup()
        self._home = home
        self._sync = sync

    def resolve(self, path: str) -> str:
        """Resolve symbolic links as in the recorded effects of the call that is being planned,
        since the files may have changed."""
        if "\0" in path:
            raise ToolError("A path cannot contain a NUL byte.")
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        plain = posixpath.normpath(posixpath.join(self.cwd, path))
        due = self._sync.due
        known: set[str] = set()
        match due:
            case ToolIntended(judged=planned):
                pass
            case EffectDecided(judged=one):
                planned = (one,)
            case _:
                planned = ()
        for judged in planned:
            match judged.effect:
                case ReadPath(path=found) | WritePath(path=found) | DeletePath(path=found):
                    known.add(found)
                case RunCommand(cwd=cwd):
                    known.add(cwd)
                case _:
                    pass
        if plain in known:
            return plain
        alike = [each for each in known if posixpath.basename(each) == posixpath.basename(plain)]
        return alike[0] if len(alike) == 1 else plain

    async def stat(self, path: str) -> FileInfo | None:
        return None

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        return ()

    async def read_bytes(self, path: str) -> bytes:
        raise ToolError(f"{path} is not part of the recording.")

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Do nothing: a replay writes no files."""

    async def delete(self, path: str) -> None:
        """Do nothing: a replay deletes no files."""

    async def search(self, query: SearchQuery) -> SearchResult:
        return SearchResult()

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        return CommandResult(output="", exit_code=0, cwd=self.cwd)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        raise ToolError("A replay starts no processes.")

    async def scratch(self, name: str, data: bytes) -> str:
        """Return the recorded path of the text."""
        due = self._sync.due
        if isinstance(due, ToolFinished | InnerCallFinished) and "persisted" in due.result.details:
            return str(due.result.details["persisted"])
        return name

    async def close(self) -> None:
        """Do nothing: nothing is open."""


class RecordedProcesses:
    """Lists only the process that the next recorded effect signals."""

    def __init__(self, sync: SyncPoints) -> None:
        self._sync = sync

    async def list(self) -> tuple[ProcessInfo, ...]:
        match self._sync.due:
            case EffectDecided(judged=JudgedEffect(effect=SignalProcess() as sent)):
                info = ProcessInfo(
                    id=sent.process_id,
                    command=sent.command,
                    cwd=sent.cwd,
                    pid=0,
                    started_at=0.0,
                    status="running",
                )
                return (info,)
            case _:
                return ()

    async def _find(self, process_id: str, *_data: object, **_options: object) -> ProcessInfo:
        raise NotFound(f"No process has the id {process_id}.")

    poll = log = wait = write = close = kill = _find

    async def notices(self) -> AsyncIterator[ProcessNotice]:
        none: tuple[ProcessNotice, ...] = ()
        for notice in none:
            yield notice
