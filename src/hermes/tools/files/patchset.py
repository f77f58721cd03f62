"""Plans a patch over several files before any of them is changed."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.errors import EffectDenied, ToolError
from hermes.core.ports import Workspace
from hermes.tools.edits.hunks import splices
from hermes.tools.edits.v4a import AddFile, DeleteFile, Hunk, MoveFile, Operation, UpdateFile
from hermes.tools.files.access import load, locate
from hermes.tools.files.changes import FileEdit
from hermes.tools.files.textfile import TextFile, decode_text


async def plan_patch(workspace: Workspace, operations: Sequence[Operation]) -> list[FileEdit]:
    """Return the changes of all operations; ToolError lists every operation that fails."""
    draft = PatchDraft(workspace)
    problems: list[str] = []
    for operation in operations:
        try:
            await draft.take(operation)
        except EffectDenied:
            raise
        except ToolError as error:
            problems.append(f"{operation.path}: {error}")
    if problems:
        raise ToolError("\n".join(("The patch does not apply; no file was changed.", *problems)))
    return draft.changes()


class PatchDraft:
    """Files as the operations so far would leave them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._before: dict[str, bytes | None] = {}
        self._after: dict[str, bytes | None] = {}
        self._names: dict[str, str] = {}
        self._sources: dict[str, str] = {}

    async def take(self, operation: Operation) -> None:
        path = await self._open(operation.path)
        match operation:
            case AddFile(text=text):
                self._create(path, TextFile(raw=text).encode())
            case DeleteFile():
                self._existing(path)
                self._after[path] = None
            case MoveFile(target=target):
                await self._move(path, target)
            case UpdateFile(hunks=hunks, target=target):
                self._after[path] = self._apply_hunks(path, hunks)
                if target:
                    await self._move(path, target)

    def changes(self) -> list[FileEdit]:
        found = [
            FileEdit(
                path=path,
                name=self._names[path],
                before=before,
                after=self._after[path],
                moved_from=self._names[self._sources[path]] if path in self._sources else "",
                moved=self._before[self._sources[path]] if path in self._sources else None,
            )
            for path, before in self._before.items()
            if before != self._after[path]
        ]
        if not found:
            raise ToolError("The patch changes nothing: the files already have this content.")
        return found

    async def _open(self, name: str) -> str:
        located = await locate(self._workspace, name)
        if located.path not in self._before:
            info = located.info
            data = await load(self._workspace, located.path, info) if info else None
            self._before[located.path] = self._after[located.path] = data
            self._names[located.path] = name
        return located.path

    def _existing(self, path: str) -> bytes:
        data = self._after[path]
        if data is None:
            raise ToolError("there is no such file.")
        return data

    def _create(self, path: str, data: bytes) -> None:
        if self._after[path] is not None:
            raise ToolError("the file exists already; use '*** Update File', or write_file.")
        self._after[path] = data

    async def _move(self, path: str, target: str) -> None:
        data = self._existing(path)
        goal = await self._open(target)
        if goal == path:
            raise ToolError("a file cannot be moved onto itself.")
        if self._after[goal] is not None:
            raise ToolError(f"{target} exists already.")
        self._after[goal], self._after[path] = data, None
        self._sources[goal] = self._sources.pop(path, path)

    def _apply_hunks(self, path: str, hunks: Sequence[Hunk]) -> bytes:
        file = decode_text(self._existing(path))
        if file is None:
            raise ToolError("it is binary; only text can be patched.")
        return file.apply_splices(splices(file.text, hunks)).encode()
