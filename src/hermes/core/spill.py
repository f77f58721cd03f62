"""Moves large tool results to files; the model gets a preview and the path."""

from __future__ import annotations

from zlib import crc32

from hermes.codec.values import replace
from hermes.core.errors import ToolError
from hermes.core.messages import Image, Text, ToolResult
from hermes.core.ports import Workspace
from hermes.core.tools import ToolSettings

RESULT_CHARS = 100_000
TURN_CHARS = 200_000
RESULT_FLOOR = 2_500
TURN_FLOOR = 8_000
READ_FLOOR = 3_000
PREVIEW_CHARS = 1_500
CHARS_PER_TOKEN = 4


def limit_file_reads(settings: ToolSettings, window: int) -> ToolSettings:
    """The settings with at most a fifth of the window for one file read: unlike other results, file
    content is not moved to a file again."""
    most = max(READ_FLOOR, window * CHARS_PER_TOKEN // 5)
    return replace(settings, file_read_max_chars=min(settings.file_read_max_chars, most))


class ResultLimiter:
    """Limits the results of one turn to a share of the window, given in tokens. Once the turn's
    share is used, every longer result is replaced by a preview."""

    def __init__(self, workspace: Workspace, window: int) -> None:
        chars = window * CHARS_PER_TOKEN
        self._workspace = workspace
        self._per_result = max(RESULT_FLOOR, min(RESULT_CHARS, chars * 15 // 100))
        self._per_turn = max(TURN_FLOOR, min(TURN_CHARS, chars * 30 // 100))
        self._used = 0

    def reset(self) -> None:
        """The earlier results were compacted, so their share is free again."""
        self._used = 0

    async def fit(self, result: ToolResult) -> ToolResult:
        """The result, or a preview of it. File content already has a file."""
        size = len(result.text)
        room = min(self._per_result, max(PREVIEW_CHARS, self._per_turn - self._used))
        if size > room and result.name != "read_file":
            result = await self._move_to_file(result)
        self._used += len(result.text)
        return result

    async def _move_to_file(self, result: ToolResult) -> ToolResult:
        text = result.text
        try:
            path = await self._workspace.scratch(_file_name(result.call_id, text), text.encode())
        except ToolError:
            # Without a file to write to, keep what fits.
            kept = text[: self._per_result // 2]
            cut = f"\n[{len(text) - len(kept)} more characters could not be stored.]"
            return replace(result, parts=(Text(text=kept + cut),))
        preview = (
            f"<persisted-output>\n{text[:PREVIEW_CHARS]}\n</persisted-output>\n"
            f"[{len(text)} characters in all; the whole text is in {path}: "
            "use read_file with offset and limit, or search_files, to see more.]"
        )
        images = tuple(part for part in result.parts if isinstance(part, Image))
        return replace(
            result,
            parts=(Text(text=preview), *images),
            details={**result.details, "persisted": path},
        )


def _file_name(call_id: str, text: str) -> str:
    """Models reuse call ids, so the content is part of the name."""
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in call_id)[:60]
    return f"results/{safe}-{crc32(text.encode()):08x}.txt"
