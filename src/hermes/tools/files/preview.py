"""What a call of an edit tool would do to files, without doing it."""

from __future__ import annotations

import asyncio

from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.core.ports import Workspace
from hermes.tools.edits import v4a
from hermes.tools.edits.replace import find, replacements
from hermes.tools.files import access
from hermes.tools.files.edits import FileEdit
from hermes.tools.files.patch import plan_patch
from hermes.tools.files.textfile import TextFile, decode_text


async def preview_edits(workspace: Workspace, tool: str, arguments: JsonObject) -> list[FileEdit]:
    """The changes that a call would make; empty if it is not an edit or would fail. `workspace` is
    read on behalf of the person who decides, not of the model."""
    try:
        texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
        if tool == "write_file":
            return [await _preview_write(workspace, texts["path"], texts["content"])]
        if tool != "patch":
            return []
        if texts.get("patch") and not texts.get("old_string"):
            return await plan_patch(workspace, v4a.parse(texts["patch"]))
        replace_all = arguments.get("replace_all") is True
        return await _preview_replacement(workspace, texts, replace_all=replace_all)
    except (ToolError, KeyError):
        # The call itself reports what is wrong with it.
        return []


async def _preview_write(workspace: Workspace, path: str, content: str) -> FileEdit:
    located = await access.locate(workspace, path)
    before = await access.load(workspace, located.path, located.info) if located.info else None
    old = decode_text(before) if before is not None else None
    after = (old.with_text(content) if old else TextFile(raw=content)).encode()
    return FileEdit(path=located.path, name=path, before=before, after=after)


async def _preview_replacement(
    workspace: Workspace, texts: dict[str, str], *, replace_all: bool
) -> list[FileEdit]:
    located = await access.locate(workspace, texts["path"])
    before = await access.load(workspace, located.path, located.info) if located.info else b""
    old, new = (texts[name].replace("\r\n", "\n") for name in ("old_string", "new_string"))
    file = decode_text(before)
    if file is None or not old:
        return []
    found = await asyncio.to_thread(find, file.text, old, replace_all=replace_all)
    if found is None or (len(found.spans) > 1 and not replace_all):
        return []
    after = file.apply_splices(replacements(file.text, old, new, found)).encode()
    return [FileEdit(path=located.path, name=texts["path"], before=before, after=after)]
