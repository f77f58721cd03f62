"""The tool that writes a whole file."""

from __future__ import annotations

import posixpath
from typing import Annotated

from hermes.core.effects import WritePath
from hermes.core.errors import EffectDenied, ToolError
from hermes.core.ports import Workspace
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, tool
from hermes.tools.files import access
from hermes.tools.files.access import OFFICE_SUFFIXES, ReadLog, digest, suffix
from hermes.tools.files.edits import FileEdit, apply_edits, file_details
from hermes.tools.files.textfile import TextFile, decode_text


@tool(
    effects=lambda paths, arguments: [
        WritePath(path=path) for path in access.resolve_if_valid(paths, arguments["path"])
    ],
    repeat="safe",
    toolset="file",
    kind="edit",
    display=ToolDisplay(icon="📝", verb="write", detail="{path}", title="write: {path}"),
)
async def write_file(
    ctx: ToolContext,
    path: str,
    content: Annotated[str, "Whole new text"],
) -> ToolOutput:
    """Create or overwrite a file; creates folders. To change a part use patch. Refuses JSON, YAML
    and TOML that do not parse."""
    if suffix(path) in OFFICE_SUFFIXES:
        raise ToolError(
            f"write_file writes plain text, but {suffix(path)} files are not text; create them "
            "with a program in terminal."
        )
    real = access.resolve_path(ctx.workspace, path)
    before, unseen = await _present(ctx.workspace, path)
    old = decode_text(before) if before is not None else None
    after = (old.with_text(content) if old else TextFile(raw=content)).encode()
    change = FileEdit(path=real, name=path, before=before, after=after, unseen=unseen)
    if before == after:
        ctx.service(ReadLog).record_write(real, digest(after))
        return ToolOutput.text(
            f"{path} has exactly this content already; nothing was written.",
            details={"path": real, **file_details((), ())},
        )
    folders = await _missing_folders(ctx.workspace, real)
    binary = (f"{path} was a binary file.",) if before is not None and old is None else ()
    report = await apply_edits(ctx, (change,), whole=True, warnings=binary)
    ctx.service(ReadLog).record_write(real, digest(after))
    details = {"path": real, "dirs_created": folders, **report.details}
    [diff] = report.diffs
    extent = f" (+{diff.added} -{diff.removed} lines)"
    if before is None:
        extent = "" if unseen else " (new file)"
    head = f"Wrote {len(after)} bytes to {path}{extent}."
    return ToolOutput.text("\n".join((head, *report.notes)), details=details)


async def _present(workspace: Workspace, path: str) -> tuple[bytes | None, bool]:
    """Return the present content, and whether it is hidden: a file that may be written but not read
    is replaced unseen."""
    try:
        located = await access.locate(workspace, path)
        if located.info is None:
            return None, False
        return await access.load(workspace, located.path, located.info), False
    except EffectDenied:
        return None, True


async def _missing_folders(workspace: Workspace, path: str) -> list[str]:
    """Return folders of the project that the write will create, outermost first."""
    found: list[str] = []
    folder = posixpath.dirname(path)
    while folder.startswith(workspace.root.rstrip("/") + "/"):
        if await workspace.stat(folder) is not None:
            break
        found.insert(0, folder)
        folder = posixpath.dirname(folder)
    return found
