"""The tool that changes parts of files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from hermes.codec.values import JsonObject
from hermes.core.effects import DeletePath, Effect, WritePath
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.ports import Workspace
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.tools.edits import v4a
from hermes.tools.edits.replace import find, replacements
from hermes.tools.edits.strategies import excerpts
from hermes.tools.edits.text import shorten
from hermes.tools.edits.v4a import (
    AddFile,
    DeleteFile,
    MoveFile,
    Operation,
    UpdateFile,
    splices,
)
from hermes.tools.files import access
from hermes.tools.files.access import ReadLog, load, locate
from hermes.tools.files.edits import FileEdit, apply_edits
from hermes.tools.files.textfile import TextFile, decode_text


async def plan_patch(workspace: Workspace, operations: Sequence[Operation]) -> list[FileEdit]:
    """Return the changes of all operations; raise ToolError that lists every operation that
    fails."""
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
                if self._after[path] is not None:
                    raise ToolError(
                        "the file exists already; use '*** Update File', or write_file."
                    )
                self._after[path] = TextFile(raw=text).encode()
            case DeleteFile():
                self._existing(path)
                self._after[path] = None
            case MoveFile(target=target):
                await self._move(path, target)
            case UpdateFile(hunks=hunks, target=target):
                file = decode_text(self._existing(path))
                if file is None:
                    raise ToolError("it is binary; only text can be patched.")
                self._after[path] = file.apply_splices(splices(file.text, hunks)).encode()
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

    async def _move(self, path: str, target: str) -> None:
        data = self._existing(path)
        goal = await self._open(target)
        if goal == path:
            raise ToolError("a file cannot be moved onto itself.")
        if self._after[goal] is not None:
            raise ToolError(f"{target} exists already.")
        self._after[goal], self._after[path] = data, None
        self._sources[goal] = self._sources.pop(path, path)


REREAD_AFTER = 3

Mode = Literal["replace", "patch"]


def _effects(paths: PathContext, arguments: JsonObject) -> Iterable[Effect]:
    changed: list[tuple[type[WritePath | DeletePath], str]] = []
    if not _wants_patch(**arguments):
        changed = [(WritePath, arguments["path"])]
    else:
        try:
            operations = v4a.parse(arguments["patch"])
        except ToolError:
            return  # the call itself reports the error
        for operation in operations:
            match operation:
                case v4a.DeleteFile():
                    changed.append((DeletePath, operation.path))
                case v4a.MoveFile(target=target) | v4a.UpdateFile(target=target) if target:
                    changed += [(DeletePath, operation.path), (WritePath, target)]
                case _:
                    changed.append((WritePath, operation.path))
    for kind, path in changed:
        yield from (kind(path=real) for real in access.resolve_if_valid(paths, path))


@tool(
    effects=_effects,
    toolset="file",
    kind="edit",
    display=ToolDisplay(icon="🔧", verb="patch", detail="{path}", title="patch ({mode}): {path}"),
)
async def patch(
    ctx: ToolContext,
    mode: Annotated[Mode, "replace a text, or apply a V4A patch"] = "replace",
    path: Annotated[str, "replace: file"] = "",
    old_string: Annotated[str, "replace: text to find, unique"] = "",
    new_string: Annotated[str, "replace: new text"] = "",
    replace_all: Annotated[bool, "replace: every occurrence"] = False,
    patch: Annotated[
        str,
        "patch: '*** Begin Patch', then per file '*** Update File: p' with '@@ nearby line @@' and"
        " ' '/'-'/'+' lines, '*** Add File: p' with '+' lines, '*** Delete File: p',"
        " '*** Move File: a -> b', last '*** End Patch'",
    ] = "",
) -> ToolOutput:
    """Edit parts of files and see the diff. Prefer it to write_file and sed. Read the file first:
    copy old_string from it, without the N|. A patch changes all its files or none."""
    if _wants_patch(mode, old_string, patch):
        return await _make(ctx, await plan_patch(ctx.workspace, v4a.parse(patch)), ())
    if not old_string:
        raise ToolError("old_string is empty. To create or fill a file use write_file.")
    if old_string == new_string:
        raise ToolError("old_string and new_string are the same; there is nothing to change.")
    old, new = old_string.replace("\r\n", "\n"), new_string.replace("\r\n", "\n")
    change, note = await _plan_replacement(ctx, path, old, new, replace_all=replace_all)
    return await _make(ctx, (change,), note)


def _wants_patch(mode: str, old_string: str, patch: str, **_other: object) -> bool:
    """Whether the call is a patch. Models often send one and leave the mode at its default."""
    return mode == "patch" or (bool(patch) and not old_string)


async def _plan_replacement(
    ctx: ToolContext, path: str, old: str, new: str, *, replace_all: bool
) -> tuple[FileEdit, Sequence[str]]:
    """Return the change, and a note on how the text was found."""
    log = ctx.service(ReadLog)
    located = await access.locate(ctx.workspace, path)
    if located.info is None:
        near = await access.similar_files(ctx.workspace, located.path)
        hint = f" Similar files: {', '.join(near)}" if near else ""
        raise ToolError(f"There is no file {path} (looked at {located.path}).{hint}")
    before = await access.load(ctx.workspace, located.path, located.info)
    file = decode_text(before)
    if file is None:
        raise ToolError(f"{path} is binary; only text can be patched.")
    text = file.text
    found = await asyncio.to_thread(find, text, old, replace_all=replace_all)
    if found is None:
        message = [f"old_string is not in {path}; nothing was changed."]
        if alike := await asyncio.to_thread(excerpts, text, old):
            message += ["Did you mean:", "\n--\n".join(alike)]
        times = log.count_miss(located.path)
        if times >= REREAD_AFTER:
            message.append(f"This is miss number {times} in this file: read it again first.")
        raise ToolError("\n".join(message))
    how = found.strategy
    if len(found.spans) > 1 and not replace_all:
        rows = [str(text.count("\n", 0, span.start) + 1) for span in found.spans]
        raise ToolError(
            f"old_string fits in {len(rows)} places{'' if how == 'exact' else f' ({how})'}, lines "
            f"{', '.join(rows[:10])}; nothing was changed. "
            "Add lines around it to make it unique, or set replace_all."
        )
    after = file.apply_splices(replacements(text, old, new, found)).encode()
    if after == before:
        raise ToolError(f"{path} already has this text; nothing was changed.")
    log.reset_misses(located.path)
    notes: tuple[str, ...] = ()
    if found.is_approximate:
        notes = (f"old_string was only similar ({how}): check the diff.",)
    elif how != "exact":
        notes = (f"old_string was found by {how} matching.",)
    return FileEdit(path=located.path, name=path, before=before, after=after), notes


async def _make(ctx: ToolContext, changes: Sequence[FileEdit], notes: Sequence[str]) -> ToolOutput:
    report = await apply_edits(ctx, changes, whole=False)
    if len(changes) == 1:
        report.details["path"] = changes[0].path
    moved = {each.moved_from for each in changes}
    heads = [f"Moved {each.moved_from} to {each.name}" for each in changes if each.moved_from]
    heads += [
        f"Deleted {each.name}" for each in changes if each.after is None and each.name not in moved
    ]
    body = shorten("".join(diff.text for diff in report.diffs)).rstrip("\n")
    lines = filter(None, (*heads, body, *notes, *report.notes))
    return ToolOutput.text("\n".join(lines), details=report.details)
