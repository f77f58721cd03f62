"""The tool that shows a file to the model."""

from __future__ import annotations

import asyncio
from typing import Annotated

from hermes.codec.values import JsonObject, Value
from hermes.core.effects import ReadPath
from hermes.core.errors import ToolError
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, ToolSettings, tool
from hermes.tools.edits.text import rows_of
from hermes.tools.files.access import (
    ReadLog,
    digest,
    image_type,
    load,
    locate,
    resolve_if_valid,
    similar_files,
)
from hermes.tools.files.textfile import decode_text, extract_text, is_document

WARN_AT = 3
REFUSE_AT = 4


class FilePage(Value):
    """Numbered rows of a text, from `start` up to `stop`, counted from 1."""

    body: str
    start: int
    stop: int
    total: int
    # The first row that was too long to show whole, 0 when there is none.
    cut_row: int = 0

    @property
    def truncated(self) -> bool:
        return self.stop <= self.total


@tool(
    effects=lambda paths, arguments: [
        ReadPath(path=path) for path in resolve_if_valid(paths, arguments["path"])
    ],
    repeat="safe",
    toolset="file",
    kind="read",
    display=ToolDisplay(icon="📖", verb="read", detail="{path}", title="read: {path}"),
)
async def read_file(
    ctx: ToolContext,
    path: str,
    offset: Annotated[int, "First line, from 1"] = 1,
    limit: Annotated[int, "Number of lines, up to 2000"] = 500,
) -> ToolOutput:
    """Read a text file as numbered lines (N|text); also .ipynb, .docx, .xlsx. Prefer it to cat.
    The N| is not part of the file."""
    located = await locate(ctx.workspace, path)
    if located.info is None:
        near = await similar_files(ctx.workspace, located.path)
        text = f"There is no file {path} (looked at {located.path})."
        text += f" Similar files: {', '.join(near)}" if near else ""
        details: JsonObject = {"path": located.path, "similar_files": list(near)}
        return ToolOutput.text(text, details=details, failed=True)
    data = await load(ctx.workspace, located.path, located.info)
    details = {"path": located.path, "file_size": len(data)}
    if media_type := image_type(data):
        text = (
            f"{path} is a picture ({media_type}, {len(data):,} bytes), not text. "
            "If you have vision_analyze, look at it with that."
        )
        details |= {"is_image": True, "media_type": media_type}
        return ToolOutput.text(text, details=details, failed=True)
    content = await _content(path, data)
    if content is None:
        size = f"{len(data):,} bytes"
        text = f"{path} is binary ({size}). Look at it with terminal: file, strings, xxd."
        return ToolOutput.text(text, details={**details, "is_binary": True}, failed=True)
    text, source = content
    first, most = max(1, offset), max(1, min(limit, ctx.settings.max_lines))
    log, mark = ctx.service(ReadLog), digest(data)
    times = log.count_request(located.path, first, most, mark)
    if times > 1:
        return _unchanged_output(path, located.path, first, most, times)
    shown = make_page(text, first, most, ctx.settings)
    if not source:
        log.record_read(
            located.path,
            mark,
            start=shown.start,
            stop=shown.cut_row or shown.stop,
            total=shown.total,
        )
    return _output(located.path, shown, source, data)


def make_page(text: str, offset: int, limit: int, settings: ToolSettings) -> FilePage:
    """Return at most `limit` rows from row `offset` on, within the output limits."""
    rows = rows_of(text)
    if offset > max(1, len(rows)):
        raise ToolError(f"The file has {len(rows)} lines; there is no line {offset}.")
    shown: list[str] = []
    chars = cut_row = 0
    for number, row in enumerate(rows[offset - 1 : offset - 1 + limit], offset):
        line = f"{number}|{row}"
        if len(row) > settings.max_line_length:
            left = len(row) - settings.max_line_length
            line = f"{number}|{row[: settings.max_line_length]}… ({left} more characters)"
            cut_row = cut_row or number
        chars += len(line) + 1
        if shown and chars > settings.file_read_max_chars:
            break
        shown.append(line)
    stop = offset + len(shown)
    return FilePage(
        body="\n".join(shown), start=offset, stop=stop, total=len(rows), cut_row=cut_row
    )


async def _content(path: str, data: bytes) -> tuple[str, str] | None:
    """Return the text and, when the file is not plain UTF-8 text, how it was obtained; None when
    the file is not text."""
    if is_document(path):
        text = await asyncio.to_thread(extract_text, path, data)
        return text, "text extracted from the document"
    found = decode_text(data)
    if found is None:
        return None
    unicode = found.encoding not in ("cp1252", "latin-1")
    return found.text, "" if unicode else f"not UTF-8, read as {found.encoding}"


def _output(path: str, shown: FilePage, source: str, data: bytes) -> ToolOutput:
    details: JsonObject = {
        "path": path,
        "digest": digest(data).hex(),
        "file_size": len(data),
        "total_lines": shown.total,
        "start": shown.start,
        "shown": shown.stop - shown.start,
        "truncated": shown.truncated,
    }
    notes = [source] if source else []
    if shown.truncated:
        details["next_offset"] = shown.stop
        notes.append(
            f"lines {shown.start}-{shown.stop - 1} of {shown.total}; next_offset={shown.stop}"
        )
    footer = f"\n[{'; '.join(notes)}]" if notes else ""
    return ToolOutput.text((shown.body or "(the file is empty)") + footer, details=details)


def _unchanged_output(path: str, real: str, offset: int, limit: int, times: int) -> ToolOutput:
    unchanged = f"{path} is unchanged since you read these lines (offset={offset}, limit={limit})"
    if times >= REFUSE_AT:
        raise ToolError(
            f"Refused: {unchanged}, and you asked {times} times. Use what you have; "
            "if it is gone from your context, use another offset or limit."
        )
    text = f"{unchanged}; see the earlier result."
    if times >= WARN_AT:
        text += " The next request will be refused: use what you have, or another offset or limit."
    return ToolOutput.text(text, details={"path": real, "status": "unchanged", "dedup": True})
